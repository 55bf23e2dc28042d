// Quotes the line of a source file that a message is about.
#pragma once

#include <string>

#include "spec/source.h"

namespace dpt {

// The line with its number, and below it carets that mark the location; both end with a line break.
// Lines over 110 characters are cut around the location. Empty if the file must not be shown
// (SourceFile::shown). REQUIRES: at.file is not null.
std::string excerpt(const Span& at);

// The whole line; empty: there is no file.
std::string_view line_of(const Span& at);

}  // namespace dpt
