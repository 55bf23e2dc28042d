#include "formats/safetensors.h"

#include <algorithm>
#include <array>
#include <new>
#include <set>

#include "base/fail.h"
#include "base/units.h"
#include "formats/other_formats.h"
#include "formats/safetensors_header.h"

namespace dpt {
namespace {

constexpr uint64_t kMostHeader = 16 * kMiB;

std::shared_ptr<std::byte[]> allocate(size_t bytes) {
  constexpr std::align_val_t kAlign{kTensorAlignment};
  auto* memory = static_cast<std::byte*>(::operator new[](std::max<size_t>(bytes, 1), kAlign));
  return {memory, [](std::byte* p) { ::operator delete[](p, std::align_val_t{kTensorAlignment}); }};
}

// Throws for a header length that the file cannot hold. Usually the file has another
// format, which the message names.
[[noreturn]] void refuse_header(const RandomAccessFile& file, uint64_t header_bytes) {
  const std::string& path = file.path();
  std::vector<std::byte> head(std::min<uint64_t>(file.size(), kFormatBytes));
  file.read(0, head);
  if (const std::string format = other_format(head, path); !format.empty())
    fail(Fault::data, "{} is not a safetensors file but {}", path, format);
  fail(Fault::data,
       "{} is not a safetensors file or is cut short: a header of {} bytes in a file of {}", path,
       header_bytes, file.size());
}

// Checks that the tensors cover the data without gaps or overlaps and that no name repeats.
void check_cover(std::vector<SafeTensorsHeader::Row>& rows, uint64_t bytes,
                 const std::string& path) {
  std::set<std::string_view> names;
  for (const auto& row : rows)
    if (!names.insert(row.name).second)
      fail(Fault::data, "{} holds tensor '{:.80}' twice", path, row.name);
  std::ranges::stable_sort(rows, [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t end = 0;
  for (const auto& row : rows) {
    if (row.begin != end)
      fail(Fault::data,
           "{}: tensor '{:.80}' starts at byte {} of the data, but the previous tensor ends at {}",
           path, row.name, row.begin, end);
    end = row.end;
  }
  if (end != bytes)
    fail(Fault::data, "{} holds {} bytes of data, but its header describes {}", path, bytes, end);
}

}  // namespace

SafeTensorsFile::SafeTensorsFile(const std::string& path) : file_(path) {
  const uint64_t size = file_.size();
  std::array<std::byte, 8> length{};
  if (size < length.size())
    fail(Fault::data, "{} is too short for a safetensors file: {} bytes", path, size);
  file_.read(0, length);
  uint64_t header_bytes = 0;
  for (size_t i = length.size(); i-- > 0;)
    header_bytes = header_bytes << 8 | std::to_integer<uint64_t>(length[i]);
  if (header_bytes > std::min(kMostHeader, size - 8)) refuse_header(file_, header_bytes);
  std::string json(header_bytes, '\0');
  file_.read(8, std::as_writable_bytes(std::span(json)));
  SafeTensorsHeader header = parse_safetensors_header(json, path);
  const uint64_t data = 8 + header_bytes;
  check_cover(header.rows, size - data, path);
  for (auto& row : header.rows)
    entries_.push_back({.name = std::move(row.name), .desc = row.desc, .offset = data + row.begin});
  metadata_ = std::move(header.metadata);
}

void SafeTensorsFile::read(const Entry& entry, std::span<std::byte> out) const {
  require(out.size() == entry.desc.bytes(), "a tensor is read into as many bytes as it has");
  file_.read(entry.offset, out);
}

SafeTensors SafeTensors::read(const std::string& path) {
  const SafeTensorsFile file(path);
  // Each tensor is aligned in memory, whatever its offset in the file is.
  size_t bytes = 0;
  std::vector<size_t> offsets;
  for (const auto& e : file.entries()) {
    offsets.push_back(bytes);
    bytes += rounded_up(e.desc.bytes(), kTensorAlignment);
  }
  const std::shared_ptr<std::byte[]> data = allocate(bytes);
  SafeTensors out;
  for (size_t i = 0; i < offsets.size(); ++i) {
    const SafeTensorsFile::Entry& e = file.entries()[i];
    std::byte* to = data.get() + offsets[i];
    file.read(e, {to, e.desc.bytes()});
    out.entries_.push_back({.name = e.name, .desc = e.desc, .data = to});
  }
  out.metadata_ = file.metadata();
  out.data_ = data;
  return out;
}

const SafeTensors::Entry* SafeTensors::find(std::string_view name) const {
  const auto found = std::ranges::find(entries_, name, &Entry::name);
  return found == entries_.end() ? nullptr : &*found;
}

std::string safetensors_head(std::span<const NamedTensor> tensors,
                             const std::map<std::string, std::string>& metadata) {
  SafeTensorsHeader header;
  header.metadata = metadata;
  header.rows.reserve(tensors.size());
  uint64_t at = 0;
  for (const NamedTensor& t : tensors) {
    header.rows.push_back(
        {.name = t.name, .desc = t.desc, .begin = at, .end = at + t.desc.bytes()});
    at += t.desc.bytes();
  }
  std::string json = safetensors_header_json(header);
  json.resize(rounded_up(json.size() + 8, kTensorAlignment) - 8, ' ');
  std::string length;
  for (size_t i = 0; i < 8; ++i) length += static_cast<char>(json.size() >> (8 * i));
  return length + json;
}

BytesToWrite NamedTensor::bytes() const {
  if (!stored) return std::span(data, desc.bytes());
  return BytesToWrite([from = *stored, x = data](const BytesToWrite::Sink& to) {
    constexpr size_t kPiece = 4 * kMiB;
    const size_t row = from.bytes() / static_cast<size_t>(from.shape[0]);
    const auto rows = static_cast<int64_t>(std::max<size_t>(1, kPiece / row));
    std::vector<std::byte> piece;
    for (int64_t first = 0; first < from.shape[0]; first += rows) {
      piece.resize(row * static_cast<size_t>(std::min(rows, from.shape[0] - first)));
      copy_rows_from(from.shape, size_of(from.dtype), from.layout, x, first, piece);
      to(piece);
    }
  });
}

void write_safetensors(const std::string& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata, Disk* disk) {
  const std::string head = safetensors_head(tensors, metadata);
  std::vector<BytesToWrite> parts = {std::as_bytes(std::span(head))};
  for (const NamedTensor& t : tensors) parts.push_back(t.bytes());
  Disk machines_own;
  write_file(disk ? *disk : machines_own, path, parts);
}

}  // namespace dpt
