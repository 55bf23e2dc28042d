// Writes calls as Python source: "optim.SGD(model.parameters(), lr=0.01, nesterov=True)".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace dpt {

// A Python literal with the same value and type; doubles with as few digits as possible.
std::string python(bool value);
std::string python(int64_t value);
std::string python(double value);
std::string python(std::string_view value);
inline std::string python(const std::string& value) { return python(std::string_view(value)); }
inline std::string python(const char* value) { return python(std::string_view(value)); }
template <class T>
std::string python(const std::optional<T>& value) {
  return value ? python(*value) : "None";
}
template <class T>
std::string python(const std::vector<T>& values) {
  std::string text;
  for (const T& v : values) text += (text.empty() ? "" : ", ") + python(v);
  return "[" + text + "]";
}

// A value as an argument of a call; usual: it is Python's default.
struct PythonArgument {
  std::string_view name;
  std::string value;
  bool usual;
};

// PythonCall("nn.Linear").arg(784).arg(200).key("bias", bias, true).str(): "nn.Linear(784, 200)"
class PythonCall {
 public:
  explicit PythonCall(std::string_view callee) : text_(callee) { text_ += '('; }

  template <class T>
  PythonCall& arg(const T& value) {
    return add("", python(value));
  }
  template <class T>
  PythonCall& key(std::string_view name, const T& value) {
    return add(name, python(value));
  }
  // Adds a keyword argument unless it equals Python's default `usual`, as people write it.
  template <class T>
  PythonCall& key(std::string_view name, const T& value, const std::type_identity_t<T>& usual) {
    return value == usual ? *this : key(name, value);
  }
  // Adds keyword arguments as key() does, from the given one on.
  PythonCall& keys(const std::vector<PythonArgument>& all, size_t from = 0) {
    for (size_t i = from; i < all.size(); ++i)
      if (!all[i].usual) add(all[i].name, all[i].value);
    return *this;
  }
  // Adds an argument that is itself Python source.
  PythonCall& expression(std::string_view value) { return add("", value); }
  PythonCall& expression(std::string_view name, std::string_view value) { return add(name, value); }

  std::string str() const { return text_ + ")"; }

 private:
  PythonCall& add(std::string_view name, std::string_view literal);

  std::string text_;
};

}  // namespace dpt
