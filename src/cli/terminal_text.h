// How much text, and of which kind, standard output shows.
#pragma once

#include <cstddef>

namespace dpt {

// Characters per line: the environment variable COLUMNS, or else the terminal's width; 0 (no limit)
// without a terminal.
size_t text_width();

// Whether text in UTF-8 can be shown, by the environment variables that decide on it.
bool shows_utf8();

}  // namespace dpt
