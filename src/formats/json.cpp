#include "formats/json.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "base/error.h"
#include "base/utf8.h"

namespace dpt {
namespace {

bool is_plain(char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; }

// Bytes that are not UTF-8 become U+FFFD.
void append_string(std::string_view text, std::string& out) {
  out += '"';
  while (!text.empty()) {
    const auto plain = static_cast<size_t>(std::ranges::find_if_not(text, is_plain) - text.begin());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, length == 0 ? 1 : length);
    if (length == 0)
      out += "\\ufffd";
    else if (is_control(character))  // the second byte of a C1 character is its code
      fmt::format_to(std::back_inserter(out), "\\u{:04x}",
                     static_cast<unsigned char>(character.back()));
    else if (character == "\"" || character == "\\")
      (out += '\\') += character;
    else
      out += character;
    text.remove_prefix(character.size());
  }
  out += '"';
}

}  // namespace

class JsonWriter {
 public:
  JsonWriter(bool dense, std::string& out)
      : comma_(dense ? "," : ", "), colon_(dense ? ":" : ": "), out_(out) {}

  void value(const Json& json) {
    if (const auto* const x = std::get_if<bool>(&json.value_)) {
      out_ += *x ? "true" : "false";
    } else if (const auto* const i = std::get_if<int64_t>(&json.value_)) {
      fmt::format_to(std::back_inserter(out_), "{}", *i);
    } else if (const auto* const n = std::get_if<Json::Number>(&json.value_)) {
      number(*n);
    } else if (const std::string* const text = json.text()) {
      append_string(*text, out_);
    } else if (json.is_array()) {
      out_ += '[';
      const Json* last = nullptr;
      for (const Json& item : json.items()) {
        separate(item, last);
        value(item);
        last = &item;
      }
      close(json.items().empty() ? nullptr : &json.items().front(), ']');
    } else if (json.is_object()) {
      out_ += '{';
      const Json* last = nullptr;
      for (const auto& [key, item] : json.members()) {
        separate(item, last);
        append_string(key, out_);
        out_ += colon_;
        value(item);
        last = &item;
      }
      close(json.members().empty() ? nullptr : &json.members().front().second, '}');
    } else {
      out_ += "null";
    }
  }

 private:
  void number(const Json::Number& n) {
    using Style = Json::Number::Style;
    if (!std::isfinite(n.value))
      out_ += "null";
    else if (n.style == Style::rounded)
      fmt::format_to(std::back_inserter(out_), "{:.{}g}", n.value, n.digits);
    else if (n.style == Style::decimals)
      fmt::format_to(std::back_inserter(out_), "{:.{}f}", n.value, n.digits);
    else
      shortest(n);
  }

  void shortest(const Json::Number& n) {
    const size_t from = out_.size();
    fmt::format_to(std::back_inserter(out_), "{}", n.value);
    const size_t plus = out_.find('+', from);
    if (n.style == Json::Number::Style::bare_exponent && plus != out_.npos) out_.erase(plus, 1);
  }

  void separate(const Json& item, const Json* last) {
    const bool breaks = item.line_ >= 0;
    if (last) out_ += breaks ? "," : comma_;
    if (breaks) (out_ += '\n').append(static_cast<size_t>(item.line_), ' ');
  }

  void close(const Json* first, char bracket) {
    if (first && first->line_ >= 0) out_ += '\n';
    out_ += bracket;
  }

  std::string_view comma_, colon_;
  std::string& out_;
};

namespace {

class LineWriter {
 public:
  explicit LineWriter(size_t width) : width_(width) {}

  void value(const Json& json, size_t indent, size_t column) {
    const std::string flat = json.dump();
    if (json.size() == 0 || column + flat.size() <= width_) {
      out += flat;
      return;
    }
    const std::string margin(indent + 2, ' ');
    const char* before = json.is_array() ? "[\n" : "{\n";
    for (const Json& item : json.items()) {
      (out += std::exchange(before, ",\n")) += margin;
      value(item, indent + 2, indent + 2);
    }
    for (const auto& [key, item] : json.members()) {
      const std::string name = Json(key).dump() + ": ";
      ((out += std::exchange(before, ",\n")) += margin) += name;
      value(item, indent + 2, indent + 2 + name.size());
    }
    (out += '\n').append(indent, ' ') += json.is_array() ? ']' : '}';
  }

  std::string out;

 private:
  size_t width_;
};

}  // namespace

class JsonParser {
 public:
  JsonParser(std::string_view text, const JsonRules& rules) : reader_(text), rules_(rules) {}

  void whole(Json& out) {
    value(out, 0);
    reader_.expect_end();
  }

 private:
  // Fills `out` as it goes, so that it holds what comes before an error.
  void value(Json& out, int depth) {
    const char c = reader_.peek();
    if (c == '{') {
      object(out, depth + 1);
    } else if (c == '[') {
      array(out, depth + 1);
    } else if (c == '"') {
      out = reader_.string();
    } else if (!word(out)) {
      number(out, depth);
    }
  }

  void check(int depth) const {
    if (depth > rules_.depth) reader_.refuse("values are nested too deeply");
  }

  void object(Json& out, int depth) {
    check(depth);
    auto& members = out.value_.emplace<Json::Object>();
    reader_.members(JsonReader::kNoLimit, [&](std::string key) {
      members.emplace_back(std::move(key), Json());
      part(members, [&] { value(members.back().second, depth); });
    });
    refuse_duplicates(members);
  }

  void array(Json& out, int depth) {
    check(depth);
    auto& items = out.value_.emplace<Json::Array>();
    reader_.items([&] {
      items.emplace_back();
      part(items, [&] { value(items.back(), depth); });
    });
  }

  // Reads the last part of a container; drops it if it has no beginning worth keeping.
  template <class Container, class F>
  void part(Container& container, F&& read) {
    try {
      read();
    } catch (const JsonError&) {
      if (of(container.back()).size() == 0) container.pop_back();
      throw;
    }
  }
  static const Json& of(const Json& item) { return item; }
  static const Json& of(const Json::Member& member) { return member.second; }

  bool word(Json& out) {
    if (reader_.take("null")) return true;
    const bool yes = reader_.take("true");
    if (yes || reader_.take("false")) {
      out = yes;
      return true;
    }
    if (!rules_.python) return false;
    if (reader_.take("NaN"))
      out = std::nan("");
    else if (reader_.take("Infinity"))
      out = HUGE_VAL;
    else if (reader_.take("-Infinity"))
      out = -HUGE_VAL;
    else
      return false;
    return true;
  }

  void number(Json& out, int depth) {
    const auto number = reader_.number();
    if (depth > 0 && reader_.at_end()) reader_.refuse("the text ends within a value");
    if (const auto* const whole = std::get_if<int64_t>(&number))
      out = *whole;
    else
      out = std::get<double>(number);
  }

  void refuse_duplicates(const Json::Object& members) {
    constexpr size_t kFew = 16;
    std::vector<std::string_view> few;
    few.reserve(members.size());
    for (const auto& member : members) {
      if (members.size() <= kFew && std::ranges::find(few, member.first) != few.end())
        reader_.refuse(fmt::format("the key '{:.80}' appears twice", member.first));
      few.emplace_back(member.first);
    }
    if (members.size() <= kFew) return;
    std::ranges::sort(few);
    const auto twice = std::ranges::adjacent_find(few);
    if (twice != few.end()) reader_.refuse(fmt::format("the key '{:.80}' appears twice", *twice));
  }

  JsonReader reader_;
  const JsonRules& rules_;
};

std::optional<bool> Json::boolean() const {
  const auto* const x = std::get_if<bool>(&value_);
  return x ? std::optional(*x) : std::nullopt;
}

std::optional<int64_t> Json::integer() const {
  const auto* const x = std::get_if<int64_t>(&value_);
  return x ? std::optional(*x) : std::nullopt;
}

std::optional<double> Json::number() const {
  if (const auto whole = integer()) return static_cast<double>(*whole);
  const auto* const x = std::get_if<Number>(&value_);
  return x ? std::optional(x->value) : std::nullopt;
}

const Json::Array& Json::items() const {
  static const Array none;
  const auto* const items = std::get_if<Array>(&value_);
  return items ? *items : none;
}

const Json::Object& Json::members() const {
  static const Object none;
  const auto* const members = std::get_if<Object>(&value_);
  return members ? *members : none;
}

size_t Json::size() const { return items().size() + members().size(); }

const Json* Json::find(std::string_view key) const {
  const auto found = std::ranges::find(members(), key, &Member::first);
  return found == members().end() ? nullptr : &found->second;
}

Json& Json::operator[](std::string_view key) {
  if (const Json* const found = find(key)) return const_cast<Json&>(*found);
  add(std::string(key), {});
  return std::get<Object>(value_).back().second;
}

Json& Json::add(std::string key, Json value) {
  if (is_null()) value_ = Object();
  require(is_object(), "only an object has members");
  std::get<Object>(value_).emplace_back(std::move(key), std::move(value));
  return *this;
}

Json& Json::push(Json item) {
  if (is_null()) value_ = Array();
  require(is_array(), "only an array has items");
  std::get<Array>(value_).push_back(std::move(item));
  return *this;
}

Json Json::on_line(int indent) && {
  line_ = static_cast<int16_t>(indent);
  return std::move(*this);
}

void Json::append_to(std::string& out) const { JsonWriter(false, out).value(*this); }

std::string Json::dump() const {
  std::string out;
  append_to(out);
  return out;
}

std::string Json::dense() const {
  std::string out;
  JsonWriter(true, out).value(*this);
  return out;
}

std::string Json::lines(size_t width) const {
  LineWriter writer(width);
  writer.value(*this, 0, 0);
  return writer.out + "\n";
}

std::optional<Json> Json::parse(std::string_view text, const JsonRules& rules, JsonError* error) {
  Json out;
  try {
    JsonParser(text, rules).whole(out);
  } catch (const JsonError& e) {
    if (error) *error = e;
    if (!rules.keep_start || out.size() == 0) return {};
  }
  return out;
}

}  // namespace dpt
