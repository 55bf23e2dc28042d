#include "data/readers/tar.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/fail.h"
#include "base/units.h"

namespace dpt {
namespace {

constexpr size_t kBlock = 512;  // an archive consists of blocks of this size

struct Header {  // POSIX.1-1988, ustar
  char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100],
      magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], rest[12];
};
static_assert(sizeof(Header) == kBlock);

template <size_t N>
std::string_view text(const char (&field)[N]) {
  return {field, static_cast<size_t>(std::find(field, field + N, '\0') - field)};
}

class Archive {
 public:
  Archive(const std::string& path, uint64_t most_bytes)
      : path_(path), source_(open_bytes(path)), most_(most_bytes) {}

  // Returns false at the end.
  bool next() {
    source_->read(std::as_writable_bytes(std::span(&header_, 1)), "the header of a member");
    at_ += kBlock;
    const auto* bytes = reinterpret_cast<const unsigned char*>(&header_);
    if (std::all_of(bytes, bytes + kBlock, [](unsigned char b) { return b == 0; })) return false;
    uint64_t sum = 0;  // the checksum field itself counts as spaces
    for (size_t i = 0; i < kBlock; ++i)
      sum += i - offsetof(Header, checksum) < sizeof(header_.checksum) ? ' ' : bytes[i];
    if (sum != octal(header_.checksum)) broken("its checksum is wrong");
    size_ = octal(header_.size);
    if (at_ > most_ || size_ > most_ - at_)
      fail(Fault::data,
           "{}: with member {} of {} bytes, the archive holds more than {} MiB, too much for this "
           "data set. Fetch the file again.",
           path_, name(), size_, most_ / kMiB);
    if (size_ > source_->most_bytes())
      fail(
          Fault::data,
          "{}: the member {} announces {} bytes, which the archive (at most {} bytes) cannot hold. "
          "Fetch the file again.",
          path_, name(), size_, source_->most_bytes());
    return true;
  }

  bool is_file() const { return header_.type == '0' || header_.type == '\0'; }
  std::string name() const {
    const std::string_view prefix =
        std::memcmp(header_.magic, "ustar", 6) == 0 ? text(header_.prefix) : "";
    return (prefix.empty() ? "" : std::string(prefix) + "/") + std::string(text(header_.name));
  }

  TarMember read() {
    TarMember member{.name = name(), .data = allocate_bytes(size_), .size = size_};
    source_->read({member.data.get(), size_}, member.name);
    at_ += size_;
    skip((kBlock - size_ % kBlock) % kBlock);
    return member;
  }
  void skip() { skip((size_ + kBlock - 1) / kBlock * kBlock); }

 private:
  void skip(uint64_t bytes) {
    at_ += bytes;
    std::array<std::byte, 16384> aside;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    for (; bytes > 0; bytes -= std::min<uint64_t>(bytes, aside.size()))
      source_->read(std::span(aside).first(std::min<uint64_t>(bytes, aside.size())), name());
  }
  template <size_t N>
  uint64_t octal(const char (&field)[N]) const {
    uint64_t value = 0;
    for (size_t i = 0; i < N && field[i] != '\0'; ++i) {
      if (field[i] == ' ') continue;
      if (field[i] < '0' || field[i] > '7') broken("one of its numbers is not octal");
      value = value * 8 + static_cast<uint64_t>(field[i] - '0');
    }
    return value;
  }
  [[noreturn]] void broken(const char* why) const {
    fail(Fault::data, "{} is not a tar archive: the header at offset {} is invalid: {}", path_,
         at_ - kBlock, why);
  }

  const std::string& path_;
  std::unique_ptr<ByteSource> source_;
  Header header_{};
  uint64_t most_, size_ = 0, at_ = 0;  // at_: offset in the decompressed archive
};

}  // namespace

void read_tar(const std::string& path, uint64_t most_bytes,
              const std::function<bool(std::string_view)>& wanted,
              const std::function<void(TarMember)>& take) {
  Archive archive(path, most_bytes);
  while (archive.next())
    if (archive.is_file() && wanted(archive.name()))
      take(archive.read());
    else
      archive.skip();
}

}  // namespace dpt
