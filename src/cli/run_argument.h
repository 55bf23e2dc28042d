// The argument RUN of commands that show a run.
#pragma once

#include <string>

namespace dpt {

// The run directory that a user means: a run, a directory of numbered runs (its newest one), NAME
// for runs/NAME; empty: the newest run below runs/. Throws Error{data} if there is none.
std::string find_run(const std::string& given);

}  // namespace dpt
