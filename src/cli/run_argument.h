// The argument RUN of commands that show a run.
#pragma once

#include <string>

namespace dpt {

// The run directory that a user means: a run, a directory of numbered runs (its newest one), NAME
// for runs/NAME; empty: the newest run below runs/. Throws Error{data} if there is none.
// other: a directory with a file of this name counts as a run, too.
std::string find_run(const std::string& given, const char* other = nullptr);

}  // namespace dpt
