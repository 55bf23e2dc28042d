#include "data/readers/idx.h"

#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <vector>

#include "base/fail.h"
#include "data/readers/bytes.h"
#include "data/readers/cache.h"

namespace dpt {
namespace {

struct ElementType {
  uint8_t code;
  size_t bytes;
  DType becomes;
};
constexpr ElementType kTypes[] = {{0x08, 1, DType::u8},  {0x09, 1, DType::i32},
                                  {0x0b, 2, DType::i32}, {0x0c, 4, DType::i32},
                                  {0x0d, 4, DType::f32}, {0x0e, 8, DType::f32}};

struct Header {
  ElementType type{};
  Shape shape;
  uint64_t bytes = 0;            // of the elements in the file
  std::vector<std::byte> start;  // the bytes of the header
};

template <class T>
T big_endian(const std::byte* from) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i)
    value = static_cast<T>(value << 8 | std::to_integer<T>(from[i]));
  return value;
}

std::string wrong_magic(const std::string& path, const std::array<std::byte, 4>& magic) {
  return fmt::format(
      "{} is not an IDX file: it begins with {:02x} {:02x} {:02x} {:02x}, where 00 00, a type code "
      "(08 09 0b 0c 0d 0e) and 01 to 04 extents were expected",
      path, std::to_integer<int>(magic[0]), std::to_integer<int>(magic[1]),
      std::to_integer<int>(magic[2]), std::to_integer<int>(magic[3]));
}

Header read_header(ByteSource& source, const std::string& path) {
  std::array<std::byte, 4> magic{};
  source.read(magic, "the header");
  Header h;
  const auto code = std::to_integer<uint8_t>(magic[2]);
  const auto rank = std::to_integer<size_t>(magic[3]);
  for (const ElementType& t : kTypes)
    if (t.code == code) h.type = t;
  if (magic[0] != std::byte{0} || magic[1] != std::byte{0} || h.type.code == 0 || rank < 1 ||
      rank > 4)
    fail(Fault::data, "{}", wrong_magic(path, magic));

  std::array<std::byte, 16> extents{};
  source.read(std::span(extents).first(4 * rank), "the extents");
  h.start.assign(magic.begin(), magic.end());
  h.start.insert(h.start.end(), extents.begin(),
                 extents.begin() + static_cast<std::ptrdiff_t>(4 * rank));
  std::vector<int64_t> dims;
  h.bytes = h.type.bytes;
  bool fits = true;
  for (size_t i = 0; i < rank; ++i) {
    dims.push_back(big_endian<uint32_t>(&extents[4 * i]));
    fits = fits && !__builtin_mul_overflow(h.bytes, static_cast<uint64_t>(dims.back()), &h.bytes);
  }
  h.shape = Shape(dims);
  for (const int64_t d : dims)
    if (d == 0)
      fail(Fault::data, "{} is empty: its header gives the shape {}", path, h.shape.str());
  if (!fits || h.bytes > source.most_bytes())
    fail(Fault::data,
         "{}: the header announces {} elements of {} bytes, which the file (at most {} bytes{}) "
         "cannot hold. Fetch the file again.",
         path, h.shape.str(), h.type.bytes, source.most_bytes(),
         source.compressed() ? " decompressed" : "");
  return h;
}

// Converts the elements to this machine's types and byte order.
std::shared_ptr<const std::byte[]> convert(const Header& h, std::shared_ptr<std::byte[]> raw) {
  if (h.type.becomes == DType::u8) return raw;
  const auto count = static_cast<size_t>(h.shape.elements());
  std::shared_ptr<std::byte[]> out = allocate_bytes(4 * count);
  auto* ints = reinterpret_cast<int32_t*>(out.get());
  auto* floats = reinterpret_cast<float*>(out.get());
  for (size_t i = 0; i < count; ++i) {
    const std::byte* from = &raw[i * h.type.bytes];
    switch (h.type.code) {
      case 0x09:
        ints[i] = static_cast<int8_t>(big_endian<uint8_t>(from));
        break;
      case 0x0b:
        ints[i] = static_cast<int16_t>(big_endian<uint16_t>(from));
        break;
      case 0x0c:
        ints[i] = static_cast<int32_t>(big_endian<uint32_t>(from));
        break;
      case 0x0d:
        floats[i] = std::bit_cast<float>(big_endian<uint32_t>(from));
        break;
      default:
        floats[i] = static_cast<float>(std::bit_cast<double>(big_endian<uint64_t>(from)));
    }
  }
  return out;
}

Table read_all(ByteSource& source, const std::string& path, const CacheEntry* cache) {
  const Header h = read_header(source, path);
  std::shared_ptr<std::byte[]> raw = allocate_bytes(h.bytes);
  const std::span<std::byte> elements(raw.get(), h.bytes);
  source.read(elements, fmt::format("{} elements", h.shape.str()));
  source.expect_end();
  const std::span<const std::byte> start = h.start;
  if (cache != nullptr) cache->store({start.first(4), start.subspan(4), elements});
  return {{h.type.becomes, h.shape}, convert(h, std::move(raw))};
}

}  // namespace

Table read_idx(const std::string& path) {
  const std::unique_ptr<ByteSource> source = open_bytes(path);
  if (!source->compressed()) return read_all(*source, path, nullptr);
  const std::optional<CacheEntry> entry = cache_entry(path);
  if (entry)
    if (const std::unique_ptr<ByteSource> cached = entry->open()) {
      try {
        return read_all(*cached, path, nullptr);
      } catch (const Error&) {
        // Ignore a damaged cache entry.
      }
    }
  return read_all(*source, path, entry ? &*entry : nullptr);
}

TensorDesc read_idx_header(const std::string& path) {
  const Header h = read_header(*open_bytes(path), path);
  return {h.type.becomes, h.shape};
}

}  // namespace dpt
