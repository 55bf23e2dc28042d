#include "formats/zip.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include <zlib.h>

#include "base/fail.h"
#include "base/units.h"

namespace dpt {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr uint64_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kLocatorBytes = 20,
                   kEnd64Bytes = 56;
constexpr uint64_t kIn64 = 0xffffffff;  // the number stands in a ZIP64 field
constexpr uint64_t kMostMembers = 131072, kMostDirectory = 16 * kMiB;

// Little-endian numbers in a buffer. Positions are checked by the callers.
class Bytes {
 public:
  explicit Bytes(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  size_t size() const { return bytes_.size(); }
  uint64_t number(size_t at, size_t count) const {
    uint64_t out = 0;
    for (size_t i = count; i-- > 0;) out = out << 8 | std::to_integer<uint64_t>(bytes_.at(at + i));
    return out;
  }
  uint64_t u16(size_t at) const { return number(at, 2); }
  uint64_t u32(size_t at) const { return number(at, 4); }
  uint64_t u64(size_t at) const { return number(at, 8); }
  std::string text(size_t at, size_t count) const {
    return {reinterpret_cast<const char*>(bytes_.data()) + at, count};
  }

 private:
  std::vector<std::byte> bytes_;
};

class Directory {
 public:
  explicit Directory(const RandomAccessFile& file) : file_(file) {}

  std::vector<ZipMember> run() {
    find_end();
    if (entries_ > kMostMembers || bytes_ > kMostDirectory)
      broken("its directory is larger than those of torch.save");
    const Bytes all = read(start_, bytes_);
    std::vector<ZipMember> out;
    size_t at = 0;
    for (uint64_t i = 0; i < entries_; ++i) out.push_back(member(all, at));
    return out;
  }

 private:
  [[noreturn]] void broken(std::string_view why) const {
    fail(Fault::data, "{} is a damaged ZIP archive: {}", file_.path(), why);
  }

  Bytes read(uint64_t offset, uint64_t count) const {
    if (offset > file_.size() || count > file_.size() - offset)
      broken("it refers to bytes behind its end");
    std::vector<std::byte> bytes(count);
    file_.read(offset, bytes);
    return Bytes(std::move(bytes));
  }

  // The end of the directory is the archive's end, but for a comment of at most 65535 bytes.
  void find_end() {
    if (file_.size() < kEndBytes) broken("it is too short");
    const uint64_t length = std::min<uint64_t>(file_.size(), kEndBytes + 65535);
    const uint64_t from = file_.size() - length;
    const Bytes tail = read(from, length);
    size_t at = tail.size() - kEndBytes;
    while (tail.u32(at) != kEnd) {
      if (at == 0) broken("the end of its directory is missing; it is cut short");
      --at;
    }
    entries_ = tail.u16(at + 10);
    bytes_ = tail.u32(at + 12);
    start_ = tail.u32(at + 16);
    if (entries_ != 0xffff && bytes_ != kIn64 && start_ != kIn64) return;
    if (from + at < kLocatorBytes) broken("a ZIP64 field is missing");
    const Bytes locator = read(from + at - kLocatorBytes, kLocatorBytes);
    if (locator.u32(0) != kLocator64) broken("a ZIP64 field is missing");
    const Bytes end = read(locator.u64(8), kEnd64Bytes);
    if (end.u32(0) != kEnd64) broken("a ZIP64 field is missing");
    entries_ = end.u64(32);
    bytes_ = end.u64(40);
    start_ = end.u64(48);
  }

  ZipMember member(const Bytes& all, size_t& at) const {
    if (all.size() - at < kCentralBytes || all.u32(at) != kCentral)
      broken("an entry of its directory is wrong");
    const uint64_t flags = all.u16(at + 8), method = all.u16(at + 10);
    const uint64_t name = all.u16(at + 28), extra = all.u16(at + 30), comment = all.u16(at + 32);
    uint64_t packed = all.u32(at + 20), size = all.u32(at + 24), local = all.u32(at + 42);
    if (all.size() - at - kCentralBytes < name + extra + comment)
      broken("its directory is cut short");
    ZipMember out{.name = all.text(at + kCentralBytes, name)};
    read_zip64(all, at + kCentralBytes + name, extra, {&size, &packed, &local});
    at += kCentralBytes + name + extra + comment;
    if ((flags & 1) != 0)
      fail(Fault::data, "{}: its member '{:.80}' is encrypted", file_.path(), out.name);
    if (method != 0 || packed != size)
      fail(Fault::data, "{}: its member '{:.80}' is compressed, which torch.save does not do",
           file_.path(), out.name);
    const Bytes head = read(local, kLocalBytes);
    if (head.u32(0) != kLocal) broken("its directory refers to no member");
    out.offset = local + kLocalBytes + head.u16(26) + head.u16(28);
    out.size = size;
    if (out.offset > file_.size() || size > file_.size() - out.offset)
      broken("a member is not entirely in the file");
    return out;
  }

  // The numbers that did not fit into the entry stand in the extra field with number 1, in order.
  void read_zip64(const Bytes& all, size_t at, uint64_t length,
                  std::initializer_list<uint64_t*> numbers) const {
    const size_t end = at + length;
    while (end - at >= 4) {
      const uint64_t id = all.u16(at), size = all.u16(at + 2);
      at += 4;
      if (size > end - at) broken("an extra field is too long");
      size_t field = at;
      at += size;
      if (id != 1) continue;
      for (uint64_t* n : numbers) {
        if (*n != kIn64) continue;
        if (at - field < 8) broken("a ZIP64 field is too short");
        *n = all.u64(field);
        field += 8;
      }
    }
  }

  const RandomAccessFile& file_;
  uint64_t entries_ = 0, bytes_ = 0, start_ = 0;
};

std::string le(uint64_t value, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}

// What a local header and an entry of the directory have in common.
std::string common_fields(uint64_t version, uint32_t checksum, uint64_t size, uint64_t name,
                          uint64_t extra) {
  // Flag 0x800: names are UTF-8. Method 0: stored. Time and date 0, as PyTorch writes them.
  const uint64_t shown = std::min(size, kIn64);
  return le(version, 2) + le(0x800, 2) + le(0, 2) + le(0, 2) + le(0, 2) + le(checksum, 4) +
         le(shown, 4) + le(shown, 4) + le(name, 2) + le(extra, 2);
}

}  // namespace

std::vector<ZipMember> read_zip_directory(const RandomAccessFile& file) {
  return Directory(file).run();
}

void ZipWriter::append(std::string text) {
  texts_.push_back(std::move(text));
  parts_.push_back(std::as_bytes(std::span(texts_.back())));
  size_ += texts_.back().size();
}

void ZipWriter::add(const std::string& name, std::span<const std::byte> content) {
  constexpr uint64_t kAlign = 64, kZip32 = 20, kZip64 = 45;
  const uint64_t local = size_, size = content.size();
  uint32_t checksum = 0;
  checksum = static_cast<uint32_t>(
      crc32_z(checksum, reinterpret_cast<const Bytef*>(content.data()), content.size()));
  const bool large = size >= kIn64, far = local >= kIn64;
  const uint64_t version = large || far ? kZip64 : kZip32;
  std::string extra = large ? le(1, 2) + le(16, 2) + le(size, 8) + le(size, 8) : "";
  // A field of PyTorch's that only fills up to the next multiple.
  const uint64_t before = local + kLocalBytes + name.size() + extra.size() + 4;
  const uint64_t padding = (kAlign - before % kAlign) % kAlign;
  extra += "FB" + le(padding, 2) + std::string(padding, 'Z');
  append(le(kLocal, 4) + common_fields(version, checksum, size, name.size(), extra.size()) + name +
         extra);
  parts_.push_back(content);
  size_ += size;

  std::string more;
  if (large) more += le(size, 8) + le(size, 8);
  if (far) more += le(local, 8);
  if (!more.empty()) more = le(1, 2) + le(more.size(), 2) + more;
  directory_ += le(kCentral, 4) + le(version, 2) +
                common_fields(version, checksum, size, name.size(), more.size()) + le(0, 2) +
                le(0, 2) + le(0, 2) + le(0, 4) + le(std::min(local, kIn64), 4) + name + more;
  ++members_;
}

std::vector<std::span<const std::byte>> ZipWriter::finish() {
  const uint64_t start = size_, bytes = directory_.size();
  append(std::move(directory_));
  const uint64_t end = size_;
  if (start >= kIn64 || members_ >= 0xffff)
    append(le(kEnd64, 4) + le(kEnd64Bytes - 12, 8) + le(45, 2) + le(45, 2) + le(0, 4) + le(0, 4) +
           le(members_, 8) + le(members_, 8) + le(bytes, 8) + le(start, 8) + le(kLocator64, 4) +
           le(0, 4) + le(end, 8) + le(1, 4));
  const uint64_t count = std::min<uint64_t>(members_, 0xffff);
  append(le(kEnd, 4) + le(0, 2) + le(0, 2) + le(count, 2) + le(count, 2) +
         le(std::min(bytes, kIn64), 4) + le(std::min(start, kIn64), 4) + le(0, 2));
  return std::move(parts_);
}

}  // namespace dpt
