#include "optim/python_call.h"

#include <cmath>

#include <fmt/format.h>

namespace dpt {

PythonCall::PythonCall(std::string_view callee, std::string_view first)
    : text_(fmt::format("{}({}", callee, first)) {}

PythonCall& PythonCall::add(std::string_view name, const std::string& literal) {
  text_ += fmt::format(", {}={}", name, literal);
  return *this;
}

std::string PythonCall::literal(bool value) { return value ? "True" : "False"; }

std::string PythonCall::literal(int64_t value) { return fmt::format("{}", value); }

std::string PythonCall::literal(double value) {
  if (!std::isfinite(value)) return fmt::format("float(\"{}\")", value);
  const std::string text = fmt::format("{}", value);
  // "1" would be an int, which torch refuses in places (pct_start).
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string PythonCall::literal(const std::string& value) { return "\"" + value + "\""; }

}  // namespace dpt
