// Writes PNG images (W3C, "Portable Network Graphics (PNG) Specification").
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace dpt {

// The bytes of a file with pixels [height, width, 3] of red, green and blue. REQUIRES: as many
// bytes, and a size above 0. Throws Error{memory}.
std::string png_file(std::span<const uint8_t> pixels, int64_t height, int64_t width);

}  // namespace dpt
