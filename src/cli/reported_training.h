// Trains a session and reports on it in the run directory.
#pragma once

#include <string>

#include "train/run.h"

namespace dpt {

// Like run(). Rank 0 also writes env.json, plan.txt and, for a pipeline, plan.svg when the run
// begins, and report.html when it has ended, however it ended. Where these cannot be written, a
// message says so. folder: receives the run directory when the run begins, on rank 0.
int run_and_report(const Session& session, RunRequest request, std::string& folder);

}  // namespace dpt
