#include "formats/json_text.h"

#include <cmath>

#include <fmt/format.h>

#include "base/utf8.h"

namespace dpt {

std::string json_text(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, length == 0 ? 1 : length);
    if (length == 0)
      out += "\\ufffd";
    else if (is_control(character))  // the second byte of a C1 character is its code
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(character.back()));
    else if (character == "\"" || character == "\\")
      (out += '\\') += character;
    else
      out += character;
    text.remove_prefix(character.size());
  }
  return out + "\"";
}

std::string json_number(double x) { return std::isfinite(x) ? fmt::format("{:.9g}", x) : "null"; }

}  // namespace dpt
