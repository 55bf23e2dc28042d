#include "train/metrics_record.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <system_error>

#include "train/metrics_file.h"

namespace dpt {
namespace {

std::string utf8_of(uint32_t code) {
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800)
    return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
  return {static_cast<char>(0xe0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3f)),
          static_cast<char>(0x80 | (code & 0x3f))};
}

class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  bool line(MetricsRecord& out) { return object(out, "", 0) && (skip_space(), rest_.empty()); }

 private:
  static constexpr int kDeepest = 3;

  void skip_space() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size()));
  }

  bool take(std::string_view word) {
    skip_space();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  bool object(MetricsRecord& out, const std::string& prefix, int depth) {
    if (depth == kDeepest || !take("{")) return false;
    if (take("}")) return true;
    do {
      std::string key;
      if (!string(key) || !take(":") || !value(out, prefix + key, depth)) return false;
    } while (take(","));
    return take("}");
  }

  bool value(MetricsRecord& out, const std::string& key, int depth) {
    skip_space();
    if (rest_.starts_with('{')) return object(out, key + ".", depth + 1);
    if (rest_.starts_with('"')) {
      std::string text;
      if (!string(text)) return false;
      out.texts.emplace_back(key, std::move(text));
      return true;
    }
    double number = 0;
    if (!word_or_number(number)) return false;
    out.numbers.emplace_back(key, number);
    return true;
  }

  // Also NaN and Infinity, as Python writes them.
  bool word_or_number(double& out) {
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    constexpr std::pair<std::string_view, double> kWords[] = {
        {"null", kNan}, {"NaN", kNan},           {"true", 1},
        {"false", 0},   {"Infinity", kInfinity}, {"-Infinity", -kInfinity}};
    for (const auto& [word, meaning] : kWords)
      if (take(word)) {
        out = meaning;
        return true;
      }
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), out);
    if (error != std::errc()) return false;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return true;
  }

  bool string(std::string& out) {
    if (!take("\"")) return false;
    while (!rest_.empty() && rest_[0] != '"') {
      if (rest_[0] == '\\') {
        if (!escape(out)) return false;
        continue;
      }
      out += rest_[0];
      rest_.remove_prefix(1);
    }
    return take("\"");
  }

  bool escape(std::string& out) {
    constexpr std::string_view kNames = "nrtbf", kMeanings = "\n\r\t\b\f";
    if (rest_.size() < 2) return false;
    const char c = rest_[1];
    rest_.remove_prefix(2);
    if (c != 'u') {
      const size_t i = kNames.find(c);
      out += i == kNames.npos ? c : kMeanings[i];
      return true;
    }
    constexpr size_t kDigits = 4;
    constexpr int kHexadecimal = 16;
    uint32_t code = 0;
    const std::string_view digits = rest_.substr(0, kDigits);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), code, kHexadecimal);
    if (error != std::errc() || end != digits.data() + kDigits) return false;
    out += utf8_of(code);
    rest_.remove_prefix(kDigits);
    return true;
  }

  std::string_view rest_;
};

}  // namespace

std::optional<double> MetricsRecord::number(std::string_view key) const {
  const auto found = std::ranges::find(numbers, key, [](const auto& n) { return n.first; });
  return found == numbers.end() ? std::nullopt : std::optional(found->second);
}

std::string_view MetricsRecord::text(std::string_view key) const {
  const auto found = std::ranges::find(texts, key, [](const auto& t) { return t.first; });
  return found == texts.end() ? std::string_view() : std::string_view(found->second);
}

RecordKind MetricsRecord::kind() const {
  if (number("final")) return RecordKind::final;
  if (number("evaluation")) return RecordKind::evaluation;
  if (number("step")) return RecordKind::step;
  return number("epoch") ? RecordKind::epoch : RecordKind::other;
}

std::optional<MetricsRecord> parse_record(std::string_view line) {
  MetricsRecord out;
  const bool whole = Parser(line).line(out);
  // read_lines() drops the end of longer lines; what such a record begins with is good.
  const bool cut = line.size() >= kMostRecordBytes && !out.numbers.empty();
  return whole || cut ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace dpt
