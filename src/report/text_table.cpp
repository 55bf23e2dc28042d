#include "report/text_table.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/wrap.h"
#include "spec/source.h"

namespace dpt {
namespace {

constexpr size_t kGap = 2;                         // spaces between columns
constexpr size_t kLeastEnd = 8, kLeastFront = 16;  // characters that are left of a cut cell
constexpr size_t kLeastLine = 40;

size_t line_width(const std::vector<TextColumn>& columns) {
  size_t out = 0;
  for (const TextColumn& c : columns) out += c.width() + kGap;
  return out - kGap;
}

// The end of a path tells runs apart.
std::string shortened_in_front(const std::string& text, size_t most) {
  if (code_points(text) <= most) return text;
  size_t begin = 0;
  while (code_points(std::string_view(text).substr(begin)) > most - 2) ++begin;
  while (begin < text.size() && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) ++begin;
  return ".." + text.substr(begin);
}

void shorten(TextColumn& c, size_t by) {
  const size_t now = c.width(), least = std::min(now, kLeastEnd);
  const size_t most = now > by ? std::max(now - by, least) : least;
  for (std::string& cell : c.cells)
    cell = c.cut == TextColumn::Cut::front ? shortened_in_front(cell, most) : shortened(cell, most);
}

}  // namespace

size_t TextColumn::width() const {
  size_t most = 0;
  for (const std::string& c : cells) most = std::max(most, code_points(c));
  return most;
}

std::string shortened(const std::string& text, size_t most) {
  if (code_points(text) <= most) return text;
  size_t bytes = text.size();
  while (bytes > 0 && code_points(std::string_view(text).substr(0, bytes)) > most - 2) --bytes;
  return text.substr(0, bytes) + "..";
}

std::vector<std::string> fit_columns(std::vector<TextColumn>& columns, size_t width) {
  std::vector<std::string> out;
  const auto excess = [&] {
    const size_t now = line_width(columns), most = std::max(width, kLeastLine);
    return now > most ? now - most : 0;
  };
  for (TextColumn& c : columns)
    if (c.cut == TextColumn::Cut::end && excess() > 0) shorten(c, excess());
  const auto spare = [](const TextColumn& c) {
    const size_t now = c.width();
    return c.cut == TextColumn::Cut::front && now > kLeastFront ? now - kLeastFront : 0;
  };
  while (excess() > 0) {
    const auto path = std::ranges::max_element(columns, {}, spare);
    const auto last = std::ranges::max_element(columns, {}, &TextColumn::rank);
    if (last->rank <= 0 || spare(*path) >= excess()) {
      if (path->cut == TextColumn::Cut::front) shorten(*path, excess());
      break;
    }
    const std::string name = last->name;
    out.push_back(name);
    columns.erase(last);
    for (const TextColumn& c : columns)
      if (c.with == name) out.push_back(c.name);
    std::erase_if(columns, [&](const TextColumn& c) { return c.with == name; });
  }
  return out;
}

std::string table_text(const std::vector<TextColumn>& columns) {
  std::string out;
  for (size_t i = 0; i < columns[0].cells.size(); ++i) {
    std::string line;
    for (const TextColumn& c : columns) {
      const std::string& cell = c.cells[i];
      const std::string space(c.width() - code_points(cell), ' ');
      line += (c.right ? space + cell : cell + space) + std::string(kGap, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string left_out_text(std::vector<std::string> names, size_t width) {
  constexpr size_t kMostNames = 4;
  if (names.empty()) return "";
  const size_t more = names.size() - std::min(names.size(), kMostNames);
  names.resize(names.size() - more);
  return wrapped(fmt::format("not shown, see --csv: {}{}", fmt::join(names, ", "),
                             more == 0 ? "" : fmt::format(" and {} more", more)),
                 std::max(width, kLeastLine));
}

}  // namespace dpt
