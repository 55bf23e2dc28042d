// Parts of SVG pictures.
#pragma once

#include <string>
#include <string_view>

namespace dpt::svg {

// The beginning of a picture of this size in pixels, with a white background; "</svg>" ends it.
std::string begin(int width, int height);

// A line of text at a point of its baseline. `style`: attributes, as text-anchor="end".
std::string text(double x, double y, std::string_view content, std::string_view style = "");

// `style`: attributes beside the color, as stroke-dasharray="5 4".
std::string line(double x1, double y1, double x2, double y2, std::string_view color,
                 std::string_view style = "");

}  // namespace dpt::svg
