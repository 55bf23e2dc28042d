#include "report/svg.h"

#include <fmt/format.h>

#include "base/stderr.h"

namespace dpt::svg {

std::string escaped(std::string_view text) {
  std::string out;
  // XML cannot represent control characters, not even as references
  for (const char c : escape_controls(text)) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

std::string begin(int width, int height) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" "
      "font-family=\"sans-serif\" font-size=\"13\" fill=\"#222222\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
      width, height);
}

std::string text(double x, double y, std::string_view content, std::string_view style) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}{}>{}</text>\n", x, y,
                     style.empty() ? "" : " ", style, escaped(content));
}

std::string line(double x1, double y1, double x2, double y2, std::string_view color,
                 std::string_view style) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"{}{}/>\n", x1, y1,
      x2, y2, color, style.empty() ? "" : " ", style);
}

}  // namespace dpt::svg
