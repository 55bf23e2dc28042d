// UTF-8, character by character.
#pragma once

#include <cstddef>
#include <string_view>

namespace dpt {

// Bytes of the character that the text begins with; 0: it begins with no valid one. Surrogates,
// overlong forms and codes above U+10FFFF are not valid. REQUIRES: the text is not empty.
size_t utf8_length(std::string_view text);

// Whether one valid character is a control code: C0, delete, or C1, of which U+009B begins a
// terminal's control sequence as ESC [ does. REQUIRES: the character is not empty.
bool is_control(std::string_view character);

// Where the first byte stands that belongs to no valid character; npos: nowhere.
size_t invalid_utf8(std::string_view text);

// Where the first control code stands that is none of `allowed`; npos: nowhere.
size_t find_control(std::string_view text, std::string_view allowed = "");

}  // namespace dpt
