// Writes a call of PyTorch as Python source: "optim.SGD(model.parameters(), lr=0.01,
// nesterov=True)".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dpt {

// Arguments that are torch's own defaults are left out, as people write it.
class PythonCall {
 public:
  // callee and the first, positional argument: PythonCall("optim.SGD", "model.parameters()").
  PythonCall(std::string_view callee, std::string_view first);

  template <class T>
  PythonCall& arg(std::string_view name, const T& value) {
    return add(name, literal(value));
  }
  template <class T>
  PythonCall& arg(std::string_view name, const T& value, const T& torch_default) {
    return value == torch_default ? *this : arg(name, value);
  }

  std::string str() const { return text_ + ")"; }

  // Literals that Python reads back to the same value; doubles with as few digits as that takes.
  static std::string literal(bool value);
  static std::string literal(int64_t value);
  static std::string literal(double value);
  static std::string literal(const std::string& value);
  template <class T>
  static std::string literal(const std::vector<T>& values) {
    std::string text;
    for (const T& v : values) text += (text.empty() ? "" : ", ") + literal(v);
    return "[" + text + "]";
  }

 private:
  PythonCall& add(std::string_view name, const std::string& literal);

  std::string text_;
};

}  // namespace dpt
