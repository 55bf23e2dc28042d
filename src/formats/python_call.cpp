#include "formats/python_call.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/utf8.h"

namespace dpt {

std::string python(bool value) { return value ? "True" : "False"; }

std::string python(int64_t value) { return fmt::format("{}", value); }

std::string python(double value) {
  if (!std::isfinite(value)) return fmt::format("float(\"{}\")", value);
  const std::string text = fmt::format("{}", value);
  // Without ".0", Python reads an int, which PyTorch refuses for some arguments (pct_start).
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string python(std::string_view value) {
  std::string out = "\"";
  while (!value.empty()) {
    const std::string_view character = value.substr(0, std::max<size_t>(1, utf8_length(value)));
    if (character == "\"" || character == "\\")
      (out += '\\') += character;
    else if (character == "\t" || character == "\n")
      out += character == "\t" ? "\\t" : "\\n";
    else if (is_control(character))  // the second byte of a C1 character is its code
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(character.back()));
    else
      out += character;
    value.remove_prefix(character.size());
  }
  return out + '"';
}

PythonCall& PythonCall::add(std::string_view name, std::string_view literal) {
  if (text_.back() != '(') text_ += ", ";
  if (!name.empty()) (text_ += name) += '=';
  text_ += literal;
  return *this;
}

}  // namespace dpt
