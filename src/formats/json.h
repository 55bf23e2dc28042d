// A JSON value: what files are written from, and what they are read into.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "formats/json_reader.h"

namespace dpt {

// What Json::parse() accepts.
struct JsonRules {
  int depth = 64;           // of containers within each other
  bool python = false;      // also NaN, Infinity and -Infinity, as Python writes them
  bool keep_start = false;  // of a broken object or array, returns what comes before the error
};

// Null, a bool, an integer, a double, a string, an array, or an object, whose members keep their
// order. Doubles that are not finite become null in a text, because JSON has none.
class Json {
 public:
  using Member = std::pair<std::string, Json>;
  using Array = std::vector<Json>;
  using Object = std::vector<Member>;

  // Conversions are implicit, so that values can be listed: Json{{"step", 3}, {"loss", 2.5}}.
  // NOLINTBEGIN(google-explicit-constructor)
  Json() = default;
  Json(std::nullptr_t) {}
  Json(bool x) : value_(x) {}
  template <std::integral T>
  Json(T x) : value_(static_cast<int64_t>(x)) {}  // REQUIRES: x fits 64 bits with a sign
  Json(double x) : value_(Number{x}) {}
  Json(std::string x) : value_(std::move(x)) {}
  Json(std::string_view x) : value_(std::string(x)) {}
  Json(const char* x) : value_(std::string(x)) {}
  Json(Array items) : value_(std::move(items)) {}
  Json(Object members) : value_(std::move(members)) {}
  Json(std::initializer_list<Member> members) : value_(Object(members)) {}
  // NOLINTEND(google-explicit-constructor)

  static Json array(std::initializer_list<Json> items = {}) { return Array(items); }
  static Json object() { return Object(); }
  // Of any range whose elements become values.
  template <class Range>
  static Json array_of(const Range& range) {
    Array out;
    for (const auto& x : range) out.emplace_back(x);
    return out;
  }
  // A double that is written with `digits` significant digits, as 9 for a float, or with that many
  // decimals. Others are written with as few digits as identify them.
  static Json rounded(double x, int digits) { return Number{x, Number::Style::rounded, digits}; }
  static Json decimals(double x, int digits) { return Number{x, Number::Style::decimals, digits}; }
  // 1e308, where others are written as 1e+308.
  static Json bare_exponent(double x) { return Number{x, Number::Style::bare_exponent}; }

  // The value if it has that type; empty, null or an empty container otherwise.
  std::optional<bool> boolean() const;
  std::optional<int64_t> integer() const;
  std::optional<double> number() const;  // of an integer, too
  const std::string* text() const { return std::get_if<std::string>(&value_); }
  const Array& items() const;
  const Object& members() const;
  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }
  size_t size() const;  // of an array or object

  // A member's value; null: there is none.
  const Json* find(std::string_view key) const;
  // A member's value, which is added as null if it is missing. REQUIRES: an object or null.
  Json& operator[](std::string_view key);
  // Adds a member whose key the object does not have yet. REQUIRES: an object or null.
  Json& add(std::string key, Json value);
  // REQUIRES: an array or null.
  Json& push(Json item);

  // Numbers are compared by value and type, not by their digits.
  friend bool operator==(const Json& a, const Json& b) { return a.value_ == b.value_; }

  // As an item or member, the value begins a line with this many spaces. If the first one of a
  // container does, its closing bracket has a line of its own.
  Json on_line(int indent) &&;

  // The text: ", " and ": " between values, or "," and ":" if it is dense.
  std::string dump() const;
  std::string dense() const;
  void append_to(std::string& out) const;
  // With line breaks and two spaces of indentation per level; what fits into `width` columns stays
  // on one line. Ends with a line break.
  std::string lines(size_t width = 100) const;

  // Empty if the text is not one JSON value, with the reason in `error`. Duplicate keys are
  // refused.
  static std::optional<Json> parse(std::string_view text, const JsonRules& rules = {},
                                   JsonError* error = nullptr);

 private:
  friend class JsonParser;
  friend class JsonWriter;

  struct Number {
    enum class Style : uint8_t { shortest, rounded, decimals, bare_exponent };
    double value = 0;
    Style style = Style::shortest;
    int digits = 0;
    friend bool operator==(const Number& a, const Number& b) { return a.value == b.value; }
  };
  Json(Number x) : value_(x) {}  // NOLINT(google-explicit-constructor)

  std::variant<std::monostate, bool, int64_t, Number, std::string, Array, Object> value_;
  int16_t line_ = -1;  // on_line(); -1: it stays on the line
};

}  // namespace dpt
