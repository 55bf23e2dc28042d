// Elements of SVG pictures.
#pragma once

#include <string>
#include <string_view>

namespace dpt::svg {

// Text between tags of XML and HTML: markup and control characters escaped.
std::string escaped(std::string_view text);

// The start of a picture of this size in pixels, with a white background. End it with "</svg>".
std::string begin(int width, int height);

// A line of text whose baseline starts at (x, y). `style`: attributes such as text-anchor="end".
std::string text(double x, double y, std::string_view content, std::string_view style = "");

// `style`: attributes in addition to the color, such as stroke-dasharray="5 4".
std::string line(double x1, double y1, double x2, double y2, std::string_view color,
                 std::string_view style = "");

}  // namespace dpt::svg
