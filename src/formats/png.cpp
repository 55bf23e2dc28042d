#include "formats/png.h"

#include <zlib.h>

#include "base/fail.h"

namespace dpt {
namespace {

std::string big_endian(uint32_t value) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift);
  return out;
}

const Bytef* bytes_of(const std::string& text) {
  return reinterpret_cast<const Bytef*>(text.data());
}

std::string chunk(const std::string& type, const std::string& data) {
  const std::string summed = type + data;
  const auto sum = crc32(0, bytes_of(summed), static_cast<uInt>(summed.size()));
  return big_endian(static_cast<uint32_t>(data.size())) + summed +
         big_endian(static_cast<uint32_t>(sum));
}

}  // namespace

std::string png_file(std::span<const uint8_t> pixels, int64_t height, int64_t width) {
  const auto row = static_cast<size_t>(width) * 3;
  require(height > 0 && width > 0 && pixels.size() == row * static_cast<size_t>(height),
          "three bytes per pixel");
  std::string rows;
  for (size_t at = 0; at < pixels.size(); at += row) {
    rows += '\0';  // the filter "none"
    rows.append(reinterpret_cast<const char*>(&pixels[at]), row);
  }
  uLongf size = compressBound(rows.size());
  std::string packed(size, '\0');
  if (compress(reinterpret_cast<Bytef*>(packed.data()), &size, bytes_of(rows), rows.size()) != Z_OK)
    fail(Fault::memory, "not enough memory to compress a picture of {} x {} pixels", width, height);
  packed.resize(size);
  const std::string rgb_of_8_bits("\x08\x02\0\0\0", 5);
  return "\x89PNG\r\n\x1a\n" +
         chunk("IHDR", big_endian(static_cast<uint32_t>(width)) +
                           big_endian(static_cast<uint32_t>(height)) + rgb_of_8_bits) +
         chunk("IDAT", packed) + chunk("IEND", "");
}

}  // namespace dpt
