// Starts the processes in which report/measure.h measures rows.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/spec_argument.h"
#include "report/row.h"

namespace dpt::commands {

// Runs `dptrain bench SPEC --row NOTES` with the row's overrides in a child process, which calls
// run_row(). Returns its exit code.
int start_row(const SpecArgument& spec, const BenchRow& row, int notes);

}  // namespace dpt::commands
