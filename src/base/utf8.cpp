#include "base/utf8.h"

#include <algorithm>
#include <cstdint>

namespace dpt {
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  const size_t length = lead < 0x80         ? 1
                        : lead >> 5 == 0x6  ? 2
                        : lead >> 4 == 0xe  ? 3
                        : lead >> 3 == 0x1e ? 4
                                            : 0;
  if (length == 0 || length > text.size()) return 0;
  uint32_t code = length == 1 ? lead : lead & (0x7fU >> length);
  for (size_t i = 1; i < length; ++i) {
    if (byte(i) >> 6 != 0x2) return 0;
    code = code << 6 | (byte(i) & 0x3fU);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  return code < kLeast[length] || code > 0x10ffff || surrogate ? 0 : length;
}

bool is_control(std::string_view character) {
  const auto lead = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return lead < 0x20 || lead == 0x7f;
  return lead == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
}

bool is_unprintable(std::string_view character) {
  const bool reorders = (character >= "\u202a" && character <= "\u202e") ||
                        (character >= "\u2066" && character <= "\u2069");
  return reorders || is_control(character);
}

size_t invalid_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = utf8_length(text.substr(i));
    if (length == 0) return i;
    i += length;
  }
  return text.npos;
}

size_t find_control(std::string_view text, std::string_view allowed) {
  for (size_t i = 0; i < text.size();) {
    const std::string_view character =
        text.substr(i, std::max<size_t>(1, utf8_length(text.substr(i))));
    if (is_control(character) && allowed.find(character) == allowed.npos) return i;
    i += character.size();
  }
  return text.npos;
}

}  // namespace dpt
