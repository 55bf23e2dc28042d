#include "formats/json_reader.h"

#include <charconv>

#include <fmt/format.h>

#include "base/utf8.h"

namespace dpt {
namespace {

void append_utf8(std::string& out, uint32_t c) {
  const auto put = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xc0 | c >> 6);
  } else {
    if (c < 0x10000) {
      put(0xe0 | c >> 12);
    } else {
      put(0xf0 | c >> 18);
      put(0x80 | (c >> 12 & 0x3f));
    }
    put(0x80 | (c >> 6 & 0x3f));
  }
  put(0x80 | (c & 0x3f));
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

void JsonReader::refuse(std::string why) const { throw JsonError{at_, std::move(why)}; }

char JsonReader::peek() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
    ++at_;
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool JsonReader::at_end() { return peek() == '\0' && at_ == text_.size(); }

bool JsonReader::take(char c) {
  if (peek() != c || at_ == text_.size()) return false;
  ++at_;
  return true;
}

bool JsonReader::take(std::string_view word) {
  peek();
  if (!text_.substr(at_).starts_with(word)) return false;
  at_ += word.size();
  return true;
}

void JsonReader::expect(char c) {
  if (!take(c)) refuse(fmt::format("'{}' was expected", c));
}

void JsonReader::expect_end() {
  if (!at_end()) refuse("text after the end");
}

uint32_t JsonReader::hex4() {
  constexpr int kHexadecimal = 16;
  uint32_t value = 0;
  const std::string_view digits = text_.substr(at_, 4);
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, kHexadecimal);
  if (digits.size() != 4 || error != std::errc() || end != digits.data() + 4)
    refuse("a broken \\u escape");
  at_ += 4;
  return value;
}

void JsonReader::escape(std::string& out) {
  constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
  const char c = at_ < text_.size() ? text_[at_++] : '\0';
  if (c != 'u') {
    const size_t i = kFrom.find(c);
    if (c == '\0' || i == std::string_view::npos) refuse("an unknown escape");
    out += kTo[i];
    return;
  }
  uint32_t code = hex4();
  if (code >= 0xd800 && code < 0xdc00 && text_.substr(at_, 2) == "\\u") {
    at_ += 2;
    const uint32_t low = hex4();
    if (low < 0xdc00 || low > 0xdfff) refuse("a broken surrogate pair");
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }
  if (code >= 0xd800 && code < 0xe000) refuse("a lone surrogate");
  append_utf8(out, code);
}

std::string JsonReader::string(size_t most) {
  expect('"');
  std::string out;
  while (at_ < text_.size() && text_[at_] != '"') {
    const char c = text_[at_++];
    if (static_cast<unsigned char>(c) < 0x20) refuse("a control character in a string");
    if (c == '\\')
      escape(out);
    else
      out += c;
    if (out.size() > most) refuse("a name or text that is too long");
  }
  if (at_ == text_.size()) refuse("'\"' was expected");
  ++at_;
  if (invalid_utf8(out) != out.npos) refuse("a name or text that is not UTF-8");
  return out;
}

size_t JsonReader::digits() {
  const size_t from = at_;
  while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
  if (at_ == from) refuse("a number was expected");
  return at_ - from;
}

std::variant<int64_t, double> JsonReader::number() {
  peek();
  const size_t from = at_;
  const auto next_is = [&](std::string_view any) {
    return at_ < text_.size() && any.find(text_[at_]) != any.npos;
  };
  if (next_is("-")) ++at_;
  const bool zero = next_is("0");
  if (digits() > 1 && zero) refuse("a number that begins with 0");
  bool whole = true;
  if (next_is(".")) ++at_, digits(), whole = false;
  if (next_is("eE")) {
    ++at_;
    if (next_is("+-")) ++at_;
    digits();
    whole = false;
  }
  const std::string_view text = text_.substr(from, at_ - from);
  const char* const end = text.data() + text.size();
  int64_t integer = 0;
  if (whole && text != "-0" && std::from_chars(text.data(), end, integer).ec == std::errc())
    return integer;
  double real = 0;
  if (std::from_chars(text.data(), end, real).ec != std::errc())
    refuse("a number that is out of range");
  return real;
}

}  // namespace dpt
