#include "cli/help_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/wrap.h"
#include "cli/terminal_text.h"

namespace dpt {

size_t help_width() {
  constexpr size_t kLeast = 40, kUsual = 80;
  const size_t width = text_width();
  return width == 0 ? kUsual : std::max(width, kLeast);
}

std::string entries_text(const HelpEntries& entries, size_t width) {
  constexpr size_t kIndent = 2, kGap = 2, kWidestName = 24, kNarrow = 60, kBelow = 6;
  size_t names = 0;
  for (const auto& [name, text] : entries)
    names = std::max(names, std::min(name.size(), kWidestName));
  const size_t column = width < kNarrow ? kBelow : kIndent + names + kGap;
  std::string out;
  for (const auto& [name, text] : entries) {
    std::string line = std::string(kIndent, ' ') + name;
    if (text.empty()) {
      out += line + "\n";
      continue;
    }
    std::string below = wrapped(text, width, column);
    if (line.size() + kGap <= column && width >= kNarrow)
      out += line + below.substr(line.size());
    else
      out += line + "\n" + below;
  }
  return out;
}

std::string paragraph_text(const std::string& text, size_t width) {
  std::string joined;
  bool fixed_before = false;
  for (const std::string& line : wrap_lines(text, 0)) {
    const bool fixed = line.starts_with(' ');
    if (!joined.empty()) joined += fixed || fixed_before ? '\n' : ' ';
    joined += line;
    fixed_before = fixed;
  }
  return wrapped(joined, width);
}

}  // namespace dpt
