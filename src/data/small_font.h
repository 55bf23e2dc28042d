// A font of 3 x 5 pixels, for labels in pictures.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dpt {

inline constexpr int64_t kGlyphWidth = 3, kGlyphHeight = 5;

// A text of characters that have pictures, as far as possible: Latin letters without their marks,
// "?" for others.
std::string drawable(std::string_view utf8);

// Whether pixel (x, y) of a character is set, from the top left. Lowercase letters look like
// capitals; characters without a picture look like question marks.
bool glyph_pixel(char character, int64_t x, int64_t y);

// Pixels that a text takes in width, with one empty column between two characters.
int64_t text_pixels(std::string_view text);

}  // namespace dpt
