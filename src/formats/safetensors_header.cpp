#include "formats/safetensors_header.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/fail.h"
#include "base/units.h"
#include "base/utf8.h"
#include "formats/json_text.h"

namespace dpt {
namespace {

constexpr size_t kMostTensors = 65536, kMostName = 512, kMostText = kMiB;

constexpr std::pair<std::string_view, DType> kTypes[] = {
    {"F32", DType::f32}, {"F64", DType::f64}, {"F16", DType::f16}, {"BF16", DType::bf16},
    {"I64", DType::i64}, {"I32", DType::i32}, {"U8", DType::u8}};

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

class Parser {
 public:
  Parser(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  SafeTensorsHeader parse() {
    SafeTensorsHeader out;
    bool metadata = false;
    if (text_.empty() || text_[0] != '{') refuse("the header must begin with '{'");
    members([&](std::string name) {
      if (name == "__metadata__") {
        if (std::exchange(metadata, true)) refuse("__metadata__ appears twice");
        members([&](std::string key) {
          if (!out.metadata.emplace(std::move(key), string(kMostText)).second)
            refuse("a key appears twice");
        });
        return;
      }
      if (out.rows.size() == kMostTensors) refuse("more than 65536 tensors");
      out.rows.push_back(tensor(std::move(name)));
    });
    if (peek() != '\0') refuse("text after the header's end");
    return out;
  }

 private:
  [[noreturn]] void refuse(std::string_view why) const {
    fail(Fault::data, "{} is not a valid safetensors file: {} (byte {} of its header)", path_, why,
         at_);
  }
  char peek() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) refuse(fmt::format("'{}' was expected", c));
  }

  // Calls f(key) for each member; f parses the value.
  template <class F>
  void members(F&& f) {
    expect('{');
    if (take('}')) return;
    do {
      std::string key = string(kMostName);
      expect(':');
      f(std::move(key));
    } while (take(','));
    expect('}');
  }

  uint32_t hex4() {
    uint32_t value = 0;
    const std::string_view digits = text_.substr(at_, 4);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.size() != 4 || error != std::errc() || end != digits.data() + 4)
      refuse("a broken \\u escape");
    at_ += 4;
    return value;
  }

  void escape(std::string& out) {
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

  std::string string(size_t most) {
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
    expect('"');
    if (invalid_utf8(out) != out.npos) refuse("a name or text that is not UTF-8");
    return out;
  }

  uint64_t number() {
    peek();
    uint64_t value = 0;
    const char* from = text_.data() + at_;
    const char* last = text_.data() + text_.size();
    const auto [end, error] = std::from_chars(from, last, value);
    const bool octal = end > from + 1 && *from == '0';
    if (error != std::errc() || octal || value > INT64_MAX) refuse("a whole number was expected");
    at_ += static_cast<size_t>(end - from);
    return value;
  }

  std::vector<uint64_t> numbers(size_t most) {
    std::vector<uint64_t> out;
    expect('[');
    if (take(']')) return out;
    do {
      if (out.size() == most) refuse("a list that is too long");
      out.push_back(number());
    } while (take(','));
    expect(']');
    return out;
  }

  SafeTensorsHeader::Row tensor(std::string name) {
    SafeTensorsHeader::Row row;
    std::vector<uint64_t> shape, offsets;
    bool has_type = false, has_shape = false, has_offsets = false;
    members([&](const std::string& key) {
      if (key == "dtype" && !std::exchange(has_type, true))
        row.desc.dtype = type(name);
      else if (key == "shape" && !std::exchange(has_shape, true))
        shape = numbers(Shape::kMaxRank);
      else if (key == "data_offsets" && !std::exchange(has_offsets, true))
        offsets = numbers(2);
      else
        refuse(fmt::format("'{:.40}' of tensor '{:.80}' is unknown or appears twice", key, name));
    });
    if (!has_type || !has_shape || offsets.size() != 2)
      refuse(fmt::format("tensor '{:.80}' lacks dtype, shape or data_offsets", name));
    uint64_t bytes = size_of(row.desc.dtype);
    bool fits = true;
    for (const uint64_t d : shape) fits = fits && !__builtin_mul_overflow(bytes, d, &bytes);
    const std::vector<int64_t> dims(shape.begin(), shape.end());
    row.desc.shape = Shape(dims);
    row.begin = offsets[0];
    row.end = offsets[1];
    if (!fits || row.begin > row.end || row.end - row.begin != bytes)
      refuse(fmt::format("tensor '{:.80}' {} {} does not fit its bytes {}..{}", name,
                         row.desc.shape.str(), name_of(row.desc.dtype), row.begin, row.end));
    row.name = std::move(name);
    return row;
  }

  DType type(const std::string& name) {
    const std::string word = string(kMostName);
    for (const auto& [known, dtype] : kTypes)
      if (word == known) return dtype;
    refuse(fmt::format(
        "tensor '{:.80}' has dtype '{:.40}'; F32 F64 F16 BF16 I64 I32 U8 can be read", name, word));
  }

  std::string_view text_;
  const std::string& path_;
  size_t at_ = 0;
};

}  // namespace

SafeTensorsHeader parse_safetensors_header(std::string_view json, const std::string& path) {
  return Parser(json, path).parse();
}

std::string safetensors_header_json(const SafeTensorsHeader& header) {
  std::vector<std::string> members, texts;
  for (const auto& [key, value] : header.metadata)
    texts.push_back(json_text(key) + ":" + json_text(value));
  if (!texts.empty())
    members.push_back(fmt::format("\"__metadata__\":{{{}}}", fmt::join(texts, ",")));
  for (const SafeTensorsHeader::Row& row : header.rows) {
    const auto type =
        std::ranges::find(kTypes, row.desc.dtype, &std::pair<std::string_view, DType>::second);
    members.push_back(fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                                  json_text(row.name), type->first,
                                  fmt::join(row.desc.shape.extents(), ","), row.begin, row.end));
  }
  return fmt::format("{{{}}}", fmt::join(members, ","));
}

}  // namespace dpt
