// Text for people in lines of a limited width.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace dpt {

// Breaks the text at spaces, and at its own line breaks, into lines of at most `width` characters.
// A longer word has a line of its own. width 0: only at its own line breaks.
std::vector<std::string> wrap_lines(std::string_view text, size_t width);

// The lines, each with `indent` spaces before it, all within `width`. Each ends with a line break.
std::string wrapped(std::string_view text, size_t width, size_t indent = 0);

}  // namespace dpt
