#include "data/write_npy.h"

#include <bit>
#include <cerrno>
#include <fstream>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/fail.h"
#include "base/files.h"

namespace dpt {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are written as they lie");

std::string_view type_of(DType dtype) {
  if (dtype == DType::u8) return "|u1";
  if (dtype == DType::i32) return "<i4";
  require(dtype == DType::f32, "a table holds u8, i32 or f32");
  return "<f4";
}

// Magic bytes, version, header length, and the header, padded to a multiple of 64 bytes.
std::string header_of(const TensorDesc& desc) {
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({},), }}",
                                 type_of(desc.dtype), fmt::join(desc.shape.extents(), ", "));
  constexpr size_t kBefore = 10, kAlign = 64;
  text.append(kAlign - 1 - (kBefore + text.size()) % kAlign, ' ');
  text += '\n';
  const char length[] = {static_cast<char>(text.size() & 0xff),
                         static_cast<char>(text.size() >> 8)};
  return std::string("\x93NUMPY\x01\x00", 8) + std::string(length, 2) + text;
}

}  // namespace

void write_npy(const std::string& path, const Table& table, const SampleReader* reader,
               int64_t samples) {
  require(samples <= table.size(), "a table has as many samples as are written");
  const size_t element = size_of(table.desc.dtype);
  const size_t bytes = static_cast<size_t>(table.sample().elements()) * element;
  const size_t step = static_cast<size_t>(table.step()) * element;
  std::vector<std::byte> made(reader ? bytes : 0);
  errno = 0;
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << header_of({table.desc.dtype, table.desc.shape.with(0, samples)});
  for (size_t n = 0; out && n < static_cast<size_t>(samples); ++n) {
    if (reader) reader->read(static_cast<uint32_t>(n), made);
    const std::byte* row = reader ? made.data() : table.data.get() + n * step;
    out.write(reinterpret_cast<const char*>(row), static_cast<std::streamsize>(bytes));
  }
  if (!out.flush()) fail_writing(path);
}

}  // namespace dpt
