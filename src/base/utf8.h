// UTF-8 decoding, character by character.
#pragma once

#include <cstddef>
#include <string_view>

namespace dpt {

// Length in bytes of the text's first character; 0 if it is not valid. Surrogates, overlong forms
// and codes above U+10FFFF are invalid. REQUIRES: the text is not empty.
size_t utf8_length(std::string_view text);

// Whether a valid character is a control code: C0, delete or C1. (U+009B of C1 starts a terminal
// control sequence, like ESC [.) REQUIRES: the character is not empty.
bool is_control(std::string_view character);

// Whether a valid character must not reach a terminal: a control code, or one that reorders the
// characters around it (U+202A to U+202E, U+2066 to U+2069), so that a text reads as another one.
// REQUIRES: the character is not empty.
bool is_unprintable(std::string_view character);

// Index of the first byte that is not part of a valid character; npos: all are valid.
size_t invalid_utf8(std::string_view text);

// Index of the first control code that is not in `allowed`; npos: there is none.
size_t find_control(std::string_view text, std::string_view allowed = "");

}  // namespace dpt
