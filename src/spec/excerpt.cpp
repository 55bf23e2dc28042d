#include "spec/excerpt.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/units.h"
#include "base/utf8.h"

namespace dpt {
namespace {

constexpr size_t kLongestLine = 64 * kKiB;  // no line that is longer is shown
constexpr size_t kWidestLine = 110;         // longer ones are cut around the caret
constexpr size_t kBeforeCaret = 60;

// Length in bytes of the first character; 1 if it is not valid UTF-8.
size_t step(std::string_view s) { return std::max<size_t>(1, utf8_length(s)); }

// Splits a line into terminal cells, one per code point: tabs become a space, control codes a '?'.
std::vector<std::string> cells(std::string_view line) {
  std::vector<std::string> out;
  while (!line.empty()) {
    const std::string_view character = line.substr(0, step(line));
    const bool blank = character == "\t" || character == "\r";
    const bool odd = utf8_length(line) == 0 || is_unprintable(character);
    out.emplace_back(blank ? " " : odd ? "?" : character);
    line.remove_prefix(character.size());
  }
  while (!out.empty() && out.back() == " ") out.pop_back();
  return out;
}

}  // namespace

std::string excerpt(const Span& at) {
  const std::string_view text = at.file->line(at.line);
  if (!at.file->shown || text.size() > kLongestLine) return "";
  const std::vector<std::string> line = cells(text);
  const size_t column = static_cast<size_t>(std::max(at.column, 1) - 1);
  size_t first = 0;
  size_t last = line.size();
  if (line.size() > kWidestLine) {
    first = column > kBeforeCaret ? column - kBeforeCaret : 0;
    last = std::min(line.size(), first + kWidestLine);
  }
  std::string shown = first > 0 ? "..." : "";
  const size_t caret = column - first + shown.size();
  for (size_t i = first; i < last; ++i) shown += line[i];
  if (last < line.size()) shown += "...";
  // If the location spans several lines, underline only to the end of the first.
  const size_t available = last > column ? last - column : 1;
  const size_t length =
      std::clamp<size_t>(static_cast<size_t>(std::max(at.length, 1)), 1, available);
  return fmt::format("{:5} | {}\n      | {:{}}{:^^{}}\n", at.line, shown, "", caret, "", length);
}

std::string_view line_of(const Span& at) {
  return at.file ? at.file->line(at.line) : std::string_view();
}

}  // namespace dpt
