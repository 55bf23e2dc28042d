// Reads the tokens of a JSON text (RFC 8259), one after another. Json::parse() makes a value of
// them; a reader of untrusted files that accepts one form only calls this directly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace dpt {

// What is wrong with a text, and the offset of the byte where that was noticed.
struct JsonError {
  size_t offset = 0;
  std::string what;
};

// Every function throws JsonError if the text has something else. Spaces are skipped.
class JsonReader {
 public:
  static constexpr size_t kNoLimit = ~size_t{0};

  explicit JsonReader(std::string_view text) : text_(text) {}

  [[noreturn]] void refuse(std::string why) const;

  // The next character; '\0' at the end of the text.
  char peek();
  bool at_end();
  bool take(char c);                 // whether the next character is c, which is then consumed
  bool take(std::string_view word);  // likewise
  void expect(char c);
  void expect_end();

  // A string of at most `most` bytes.
  std::string string(size_t most = kNoLimit);
  // A whole number if it is written as one and has 64 bits, otherwise the nearest double.
  std::variant<int64_t, double> number();

  // Calls member(key) for each member of an object; it reads the value.
  template <class F>
  void members(size_t most_key, F&& member) {
    expect('{');
    if (take('}')) return;
    do {
      std::string key = string(most_key);
      expect(':');
      member(std::move(key));
    } while (take(','));
    expect('}');
  }

  // Calls item() for each item of an array; it reads the item.
  template <class F>
  void items(F&& item) {
    expect('[');
    if (take(']')) return;
    do item();
    while (take(','));
    expect(']');
  }

 private:
  size_t digits();
  uint32_t hex4();
  void escape(std::string& out);

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace dpt
