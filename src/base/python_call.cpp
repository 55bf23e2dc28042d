#include "base/python_call.h"

#include <cmath>

#include <fmt/format.h>

namespace dpt {

std::string python(bool value) { return value ? "True" : "False"; }

std::string python(int64_t value) { return fmt::format("{}", value); }

std::string python(double value) {
  if (!std::isfinite(value)) return fmt::format("float(\"{}\")", value);
  const std::string text = fmt::format("{}", value);
  // "1" would be an int, which torch refuses in places (pct_start).
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string python(std::string_view value) {
  std::string out = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\t' || c == '\n')
      out += c == '\t' ? "\\t" : "\\n";
    else
      out += c;
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
