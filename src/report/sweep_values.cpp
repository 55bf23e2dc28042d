#include "report/sweep_values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

namespace dpt {
namespace {

constexpr int kMostValues = 1000;  // of a key
constexpr int kDigits = 4;         // of the values of a range

// A part of a word, with its first byte in the word.
struct Part {
  std::string_view text;
  size_t at = 0;
};

// Splits at commas outside of brackets and quotes. Empty: a bracket or a quote is not closed.
std::vector<Part> split_values(std::string_view text, size_t at) {
  std::vector<Part> out;
  int depth = 0;
  char quote = 0;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == '\\' && quote == '"') ++i;
      if (c == quote) quote = 0;
      continue;
    }
    if (c == '"' || c == '\'') quote = c;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (c != ',' || depth != 0) continue;
    out.push_back({text.substr(begin, i - begin), at + begin});
    begin = i + 1;
  }
  if (depth != 0 || quote != 0) return {};
  out.push_back({text.substr(begin), at + begin});
  return out;
}

std::optional<double> number_in(std::string_view text) {
  double x = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, x);
  return error == std::errc() && rest == end && std::isfinite(x) ? std::optional(x) : std::nullopt;
}

bool is_whole(std::string_view text) { return text.find_first_of(".eEnN") == text.npos; }

// Reads one word; reports what is wrong with it.
class Word {
 public:
  Word(const SourceFile& file, bool random, Diagnostics& d)
      : file_(file), text_(file.text), random_(random), d_(d) {}

  void read(SweepWords& out) {
    const size_t equals = text_.find('=');
    if (equals == text_.npos || equals == 0)
      return error({text_, 0},
                   "an argument after the spec must be key=value or key=value,value,...");
    const std::vector<Part> parts = split_values(text_.substr(equals + 1), equals + 1);
    const bool range = parts.size() == 1 && looks_like_range(parts[0].text);
    // An open bracket is an error of YAML, which the spec's reader explains better.
    if (parts.empty() || (parts.size() == 1 && !range)) {
      out.constants.emplace_back(text_);
      return;
    }
    SweepKey key{.key = std::string(text_.substr(0, equals)), .values = {}, .range = {}};
    range ? read_range(parts[0], key) : read_list(parts, key);
    out.keys.push_back(std::move(key));
  }

 private:
  void error(const Part& part, const std::string& message) {
    const auto column = static_cast<int>(code_points(text_.substr(0, part.at))) + 1;
    const auto length = static_cast<int>(code_points(part.text));
    d_.error({.file = &file_, .line = 1, .column = column, .length = std::max(1, length)}, message);
  }

  // A path such as ../data or a..b is none.
  static bool looks_like_range(std::string_view text) {
    const size_t dots = text.find("..");
    return dots != text.npos && number_in(text.substr(0, dots));
  }

  void read_list(const std::vector<Part>& parts, SweepKey& out) {
    if (parts.size() > kMostValues)
      return error({text_, 0}, fmt::format("a key takes at most {} values", kMostValues));
    for (const Part& p : parts) {
      const bool twice = std::ranges::find(out.values, p.text) != out.values.end();
      if (p.text.empty())
        error(p, "a value is missing between the commas");
      else if (twice)
        error(p, fmt::format("the value '{}' is listed twice", p.text));
      else if (looks_like_range(p.text))
        error(p, fmt::format("a range cannot be part of a list: write {}={}, or list its values",
                             out.key, p.text));
      out.values.emplace_back(p.text);
    }
  }

  void read_range(const Part& part, SweepKey& out) {
    const size_t dots = part.text.find(".."),
                 colon = std::min(part.text.find(':'), part.text.size());
    const Part low{part.text.substr(0, dots), part.at};
    const Part high{part.text.substr(dots + 2, colon - dots - 2), part.at + dots + 2};
    const auto a = number_in(low.text), b = number_in(high.text);
    if (!b) return error(high, "the end of a range must be a number, as in 1e-3..1e-1:log:5");
    if (*b <= *a) return error(part, "the second number of a range must be the larger one");
    SweepRange range{.low = *a, .high = *b, .whole = is_whole(low.text) && is_whole(high.text)};
    std::vector<Part> options;
    for (size_t at = colon; at < part.text.size();) {
      const size_t end = std::min(part.text.find(':', at + 1), part.text.size());
      options.push_back({part.text.substr(at + 1, end - at - 1), part.at + at + 1});
      at = end;
    }
    if (options.empty()) return whole_range(part, range, out);
    range.log = options[0].text == "log";
    if (!range.log && options[0].text != "lin")
      return error(options[0], "the spacing of a range must be 'log' or 'lin'");
    if (range.log && *a <= 0)
      return error(low, "a range with 'log' must begin above 0; use 'lin', or a small number");
    const int count = options.size() > 1 ? read_count(options[1]) : 0;
    if (options.size() > 2)
      return error(options[2], "nothing may follow the number of values of a range");
    if (options.size() > 1 && count == 0) return;
    if (count == 0 && !random_)
      return error(
          part, fmt::format("say how many values: {}:5, or draw them with --random N", part.text));
    fill(range, count, out);
  }

  // 1..8
  void whole_range(const Part& part, const SweepRange& range, SweepKey& out) {
    if (!range.whole)
      return error(part,
                   fmt::format("say how the values are spaced and how many there are: {0}:lin:5 "
                               "or {0}:log:5",
                               part.text));
    if (range.high - range.low >= kMostValues)
      return error(part, fmt::format("a key takes at most {} values; say how many: {}:lin:5",
                                     kMostValues, part.text));
    fill(range, static_cast<int>(range.high - range.low) + 1, out);
  }

  int read_count(const Part& part) {
    const auto n = number_in(part.text);
    if (n && *n >= 2 && *n <= kMostValues && is_whole(part.text)) return static_cast<int>(*n);
    error(part,
          fmt::format("the number of values must be a whole number from 2 to {}", kMostValues));
    return 0;
  }

  static void fill(const SweepRange& range, int count, SweepKey& out) {
    out.range = range;
    for (int i = 0; i < count; ++i) {
      std::string value = range_value(range, static_cast<double>(i) / (count - 1), kDigits);
      if (out.values.empty() || out.values.back() != value) out.values.push_back(std::move(value));
    }
  }

  const SourceFile& file_;
  std::string_view text_;
  bool random_;
  Diagnostics& d_;
};

}  // namespace

std::string range_value(const SweepRange& range, double fraction, int digits) {
  const double x = range.log ? range.low * std::pow(range.high / range.low, fraction)
                             : range.low + (range.high - range.low) * fraction;
  if (range.whole) return fmt::format("{:.0f}", std::round(x));
  // Rounded, then as short as possible: 0.1 and not 0.100000.
  const std::string rounded = fmt::format("{:.{}g}", x, digits);
  return fmt::format("{}", number_in(rounded).value_or(x));
}

SweepWords read_sweep_words(const std::vector<std::string>& words, bool random,
                            std::vector<std::unique_ptr<SourceFile>>& files, Diagnostics& d) {
  SweepWords out;
  for (const std::string& word : words) {
    files.push_back(std::make_unique<SourceFile>(SourceFile{.path = word, .text = word}));
    Word(*files.back(), random, d).read(out);
    const auto same = [&](const SweepKey& k) { return k.key == out.keys.back().key; };
    if (!out.keys.empty() && std::ranges::count_if(out.keys, same) > 1) {
      d.error({.file = files.back().get(),
               .line = 1,
               .column = 1,
               .length = static_cast<int>(code_points(out.keys.back().key))},
              fmt::format("'{}' is given twice; list all its values once", out.keys.back().key));
      out.keys.pop_back();
    }
  }
  return out;
}

}  // namespace dpt
