// Files that dptrain writes, and its standard output.
#pragma once

#include <string>
#include <string_view>

namespace dpt {

// Replaces the file. Throws Error{failed}, which ends with what the user can do.
void write_text(const std::string& path, std::string_view text, std::string_view remedy = "");

// What was printed so far leaves the process. Throws Error{failed} where any of it could not.
void flush_output();

// With those above it. `what`: of the Error{failed}, "the run directory".
void make_folder(const std::string& path, std::string_view what);

}  // namespace dpt
