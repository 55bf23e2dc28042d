// Fills the templates of exported programs.
//
//   {{name}}                   the value; alone on a line: its lines, each with the tag's
//   indentation,
//                              or no line if the value is empty
//   {{#name}} ... {{/name}}    only if the value is true or not empty
//   {{^name}} ... {{/name}}    only if it is false or empty
//
// A line that holds nothing but the begin or the end of a section is not written.
#pragma once

#include <concepts>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace dpt {

// A text, or a flag, which only sections may ask for.
class TemplateValue {
 public:
  // NOLINTBEGIN(google-explicit-constructor)
  TemplateValue(bool flag) : value_(flag) {}
  TemplateValue(std::string text) : value_(std::move(text)) {}
  TemplateValue(std::string_view text) : value_(std::string(text)) {}
  TemplateValue(const char* text) : value_(std::string(text)) {}
  template <std::integral T>
  TemplateValue(T number) : value_(std::to_string(number)) {}
  // NOLINTEND(google-explicit-constructor)

  bool holds() const {
    const bool* const flag = std::get_if<bool>(&value_);
    return flag ? *flag : !std::get<std::string>(value_).empty();
  }
  const std::string* text() const { return std::get_if<std::string>(&value_); }

 private:
  std::variant<bool, std::string> value_;
};

using TemplateValues = std::map<std::string, TemplateValue, std::less<>>;

// The template with its values. Throws Error{failed} if the template names a value that is missing,
// if it does not name one of the values, or if its sections are not closed.
std::string fill(std::string_view text, const TemplateValues& values);

// A file of src/export/templates by its name without ".py.in". Throws Error{failed} without one.
std::string_view torch_template(std::string_view name);

// Indents every line of `text` by `columns`; empty lines stay empty.
std::string indent(std::string_view text, size_t columns);

}  // namespace dpt
