#include "base/wrap.h"

#include <algorithm>

namespace dpt {
namespace {

size_t characters(std::string_view utf8) {
  return static_cast<size_t>(
      std::ranges::count_if(utf8, [](unsigned char c) { return (c & 0xC0) != 0x80; }));
}

void wrap_paragraph(std::string_view text, size_t width, std::vector<std::string>& out) {
  out.emplace_back();
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    std::string& line = out.back();
    if (begin == 0) {
      line = word;
    } else if (width > 0 && !line.empty() && characters(line) + 1 + characters(word) > width) {
      line.erase(line.find_last_not_of(' ') + 1);
      out.emplace_back(word);
    } else {
      line += ' ';
      line += word;
    }
    begin = end + 1;
  }
}

}  // namespace

std::vector<std::string> wrap_lines(std::string_view text, size_t width) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    wrap_paragraph(text.substr(begin, end - begin), width, out);
    begin = end + 1;
  }
  return out;
}

std::string wrapped(std::string_view text, size_t width, size_t indent) {
  std::string out;
  for (const std::string& line : wrap_lines(text, width > indent ? width - indent : width))
    out += std::string(line.empty() ? 0 : indent, ' ') + line + "\n";
  return out;
}

}  // namespace dpt
