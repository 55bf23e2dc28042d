// Text of --help, in lines that fit the terminal.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace dpt {

// Characters per line of help: the terminal's width, at least 40; 80 without a terminal.
size_t help_width();

// Names in a first column, their texts wrapped in a second one, or below in a narrow terminal.
using HelpEntries = std::vector<std::pair<std::string, std::string>>;
std::string entries_text(const HelpEntries& entries, size_t width);

// The lines of a paragraph are joined and wrapped; lines that begin with spaces stay as they are.
std::string paragraph_text(const std::string& text, size_t width);

}  // namespace dpt
