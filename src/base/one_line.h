// Texts of files within a line that people read.
#pragma once

#include <string>
#include <string_view>

namespace dpt {

// Escapes what escape_controls() (base/stderr.h) escapes, and line breaks and tabs as \n and \t, so
// that a name or a value of a file cannot end a line or a comment.
std::string one_line(std::string_view text);

}  // namespace dpt
