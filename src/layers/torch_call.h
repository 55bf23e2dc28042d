// Writes a call of Python as an engineer would: arguments that have their default are left out.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/tensor.h"

namespace dpt {

// A value as Python writes it: True, 0.1, 'sum', [1.0, 2.0].
template <class T>
std::string python(const T& value) {
  if constexpr (std::is_same_v<T, bool>)
    return value ? "True" : "False";
  else if constexpr (std::is_convertible_v<T, std::string_view>)
    return fmt::format("'{}'", std::string_view(value));
  else
    return fmt::format("{}", value);  // numbers, and [1, 2] for vectors
}

// TorchCall("nn.Linear").arg(784).arg(200).key("bias", bias, true).str(): "nn.Linear(784, 200)"
class TorchCall {
 public:
  explicit TorchCall(std::string_view callee) : text_(callee) { text_ += '('; }

  template <class T>
  TorchCall& arg(const T& value) {
    return add(python(value));
  }
  template <class T>
  TorchCall& key(std::string_view name, const T& value) {
    return add(fmt::format("{}={}", name, python(value)));
  }
  template <class T>
  TorchCall& key(std::string_view name, const T& value, const std::type_identity_t<T>& fallback) {
    return value == fallback ? *this : key(name, value);
  }
  // Arguments that are expressions themselves.
  TorchCall& expression(std::string_view value) { return add(std::string(value)); }
  TorchCall& expression(std::string_view name, std::string_view value) {
    return add(fmt::format("{}={}", name, value));
  }
  std::string str() const { return text_ + ")"; }

 private:
  TorchCall& add(std::string argument) {
    if (text_.back() != '(') text_ += ", ";
    text_ += argument;
    return *this;
  }
  std::string text_;
};

}  // namespace dpt
