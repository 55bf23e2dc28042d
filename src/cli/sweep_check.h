// Checks the runs of a sweep before the first one starts.
#pragma once

#include "cli/spec_argument.h"
#include "report/sweep_run.h"

namespace dpt {

// Opens a session for each setting, without making synthetic data, and sets SweepRun::facts.
// Returns the spec of the first setting. `argument`: the spec and the overrides of all runs.
// Throws BadSpec, or Error with the fault of the first error, if a setting cannot be trained; the
// message has all errors, each once, with the runs that have it.
// REQUIRES: `runs` is not empty, and each setting's first seed precedes its other ones.
Spec check_settings(std::vector<SweepRun>& runs, const SpecArgument& argument);

}  // namespace dpt
