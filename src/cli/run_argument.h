// The argument RUN of commands that show a run.
#pragma once

#include <string>
#include <vector>

namespace dpt {

// The run directory that a user means: a run, a directory of numbered runs (its newest one), NAME
// for runs/NAME; empty: the newest run below runs/. Throws Error{data} if there is none.
// other: a directory with a file of this name counts as a run, too.
std::string find_run(const std::string& given, const char* other = nullptr);

// Names that find_run() accepts for runs in runs/, sorted: "NAME"; if `beginning` is "NAME/" or
// longer, the runs of NAME: "NAME/3".
std::vector<std::string> runs_named(const std::string& beginning);

}  // namespace dpt
