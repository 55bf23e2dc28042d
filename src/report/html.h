// Pages in HTML: one self-contained file, without scripts, for light and dark screens of any width.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dpt::html {

// The text with HTML's own characters as references, and control codes made visible. For content
// and for quoted attributes.
std::string text(std::string_view content);

// A whole page. `body` is HTML; the title is text.
std::string page(std::string_view title, const std::string& body);

// <section> with a heading; empty if the content is.
std::string section(std::string_view title, const std::string& content);

// A block that opens when it is clicked; `content` is text, shown as it is.
std::string folded(std::string_view title, std::string_view content);

// A table of texts; the first row is the head. right: columns from this one on are numbers.
using Table = std::vector<std::vector<std::string>>;
std::string table(const Table& rows, size_t right);

// A picture from a file. The file may have been replaced: as an image it cannot run anything.
std::string picture(const std::string& svg, std::string_view alt);

// The style of the parts of line charts, for pictures that stand alone.
std::string chart_style();

// The class of the n-th color for curves, which the page's style defines; they repeat after 8.
std::string color_class(size_t n);

}  // namespace dpt::html
