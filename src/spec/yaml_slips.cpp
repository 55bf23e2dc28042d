#include "spec/yaml_slips.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include <fmt/format.h>

namespace dpt {
namespace {

constexpr size_t kMostShown = 40;  // bytes of a value that a message quotes

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

size_t word_length(std::string_view s) {
  const auto is_letter = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; };
  if (s.empty() || std::isdigit(static_cast<unsigned char>(s[0]))) return 0;
  return static_cast<size_t>(std::ranges::find_if_not(s, is_letter) - s.begin());
}

bool word_end(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && is_blank(s.front())) s.remove_prefix(1);
  while (!s.empty() && is_blank(s.back())) s.remove_suffix(1);
  return s;
}

// A line without its indentation and list dashes.
struct Line {
  size_t begin = 0;   // byte offset of the remaining text in the whole text
  size_t column = 0;  // its column, from 0
  std::string_view text;
  bool empty() const { return text.empty() || text[0] == '#'; }
};

Line line_at(std::string_view text, size_t begin) {
  const std::string_view all = text.substr(begin, text.find('\n', begin) - begin);
  size_t column = 0;
  while (column < all.size() && (is_blank(all[column]) || all.substr(column).starts_with("- ")))
    ++column;
  return {.begin = begin + column, .column = column, .text = trimmed(all.substr(column))};
}

size_t begin_of_line(std::string_view text, size_t offset) {
  const size_t end = offset == 0 ? text.npos : text.rfind('\n', offset - 1);
  return end == text.npos ? 0 : end + 1;
}

// The previous line that is neither blank nor a comment.
std::optional<Line> line_above(std::string_view text, size_t begin) {
  while (begin > 0) {
    begin = begin_of_line(text, begin - 1);
    if (const Line line = line_at(text, begin); !line.empty()) return line;
  }
  return {};
}

}  // namespace

std::string missing_space(std::string_view text) {
  const size_t length = word_length(text);
  const std::string_view key = text.substr(0, length);
  std::string_view rest = trimmed(text.substr(length));
  const bool colon = text.substr(length).starts_with(':');
  if (length == 0 || !(colon || rest.starts_with('='))) return "";
  rest.remove_prefix(1);
  if (rest.empty() || (colon && is_blank(rest[0])) || rest.size() > kMostShown) return "";
  return fmt::format("write {}: `{}: {}`",
                     colon ? "a space after the colon" : "a colon and a space, not '='", key,
                     trimmed(rest));
}

std::optional<YamlSlip> missing_dash(std::string_view text, size_t offset) {
  constexpr int kMostLines = 20;
  const auto raw_line = [&](size_t begin) {
    return trimmed(text.substr(begin, text.find('\n', begin) - begin));
  };
  size_t begin = begin_of_line(text, std::min(offset, text.size()));
  for (int lines = 0; lines < kMostLines; ++lines) {
    const std::string_view line = raw_line(begin);
    const size_t at = static_cast<size_t>(line.data() - text.data());
    if (line.starts_with('-') && word_length(line.substr(1)) > 0)
      return YamlSlip{at, line.size(),
                      fmt::format("write a space after the dash: `- {}`", line.substr(1))};
    const std::optional<Line> above = line_above(text, begin);
    const bool below_entry = above && above->begin > begin_of_line(text, above->begin) &&
                             raw_line(begin_of_line(text, above->begin)).starts_with("- ");
    if (below_entry && !line.empty() && word_length(line) == line.size() &&
        at - begin <= above->column)
      return YamlSlip{at, line.size(), fmt::format("write a dash before this entry: `- {}`", line)};
    // What goes on over several lines is text without a colon.
    if (!above || (lines > 0 && line.find(':') != line.npos)) return {};
    begin = begin_of_line(text, above->begin);
  }
  return {};
}

std::string joined_lines(std::string_view value, std::string_view line) {
  const size_t blank = value.find(' ');
  if (blank == value.npos || line.empty() || line.find(value) != line.npos) return "";
  std::string_view next = value.substr(blank + 1);
  while (next.starts_with('-') || next.starts_with(' ')) next.remove_prefix(1);
  const size_t length = word_length(next);
  if (length == 0) return "";
  return fmt::format("two lines were read as one; write the second as an entry: `- {}`",
                     next.substr(0, length));
}

std::optional<YamlSlip> slip_before_key(std::string_view text, size_t offset) {
  const Line line = line_at(text, begin_of_line(text, offset));
  const size_t length = word_length(line.text);
  // In `name: a: b`, the line itself is wrong, not the one above.
  if (length == 0 || offset > line.begin + length) return {};
  const std::optional<Line> above = line_above(text, begin_of_line(text, offset));
  if (!above) return {};
  if (std::string message = missing_space(above->text); !message.empty())
    return YamlSlip{
        .offset = above->begin, .length = above->text.size(), .message = std::move(message)};
  const size_t above_length = word_length(above->text);
  if (above_length == 0 || line.column < above->column) return {};
  const std::string_view key = line.text.substr(0, length);
  const std::string_view other = above->text.substr(0, above_length);
  const std::string_view behind = above->text.substr(above_length);
  if (behind.empty())
    return YamlSlip{.offset = line.begin,
                    .length = length,
                    .message = fmt::format(
                        "write `{}:` above with a colon, and `{}` in the same column", other, key)};
  if (line.column == above->column || !behind.starts_with(": ")) return {};
  return YamlSlip{.offset = line.begin,
                  .length = length,
                  .message = fmt::format("indent `{}` to the same column as `{}`", key, other)};
}

std::optional<YamlSlip> open_bracket(std::string_view text, size_t offset, char bracket) {
  std::vector<size_t> open;
  char before = '\n';            // the last non-blank character; '\n' at the beginning of a line
  constexpr size_t kBehind = 2;  // the reader stops before a bracket that it does not expect
  for (size_t i = 0; i < std::min(offset + kBehind, text.size()); ++i) {
    const char c = text[i];
    const bool begins = before == '\n' || std::string_view("[{,:-").find(before) != text.npos;
    if (c == '#' && (i == 0 || is_blank(text[i - 1]) || text[i - 1] == '\n')) {
      i = std::min(text.find('\n', i), text.size()) - 1;
    } else if (begins && (c == '"' || c == '\'')) {
      for (++i; i < text.size() && text[i] != c; ++i)
        if (c == '"' && text[i] == '\\') ++i;
    } else if ((c == '{' || c == '[') && (begins || !open.empty())) {
      // `{sgd:{lr: 0.1}}`: the word and the bracket are one text, which a later bracket ends.
      if (!open.empty() && i > 1 && text[i - 1] == ':' && word_end(text[i - 2]))
        return YamlSlip{.offset = i - 1,
                        .length = 2,
                        .message = fmt::format("write a space after the colon: `: {}`", c)};
      open.push_back(i);
    } else if ((c == '}' || c == ']') && !open.empty()) {
      open.pop_back();
    }
    if (!is_blank(c)) before = c;
  }
  while (!open.empty() && text[open.back()] != bracket) open.pop_back();
  if (open.empty()) return {};
  return YamlSlip{.offset = open.back(),
                  .length = 1,
                  .message = fmt::format("this '{}' is not closed", bracket)};
}

}  // namespace dpt
