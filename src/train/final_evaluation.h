// Evaluates weights of a file, in this process: on the test set at the end of a run, and for
// `dptrain eval`.
#pragma once

#include <span>
#include <string>

#include "session/session.h"
#include "train/reporter.h"
#include "train/run.h"
#include "train/trainer.h"

namespace dpt {

// The spec for an evaluation of these weights in one process. The mode that trained them does not
// matter. SessionQuery names the set.
Spec evaluation_spec(Spec spec, const std::string& weights);

// After the last step and after the weights are saved: evaluates the session's final_test with the
// best weights if they are kept, else with the last ones, and reports the numbers. cores: those of
// this process; empty: workers are not pinned. Throws Error. REQUIRES: session.data.final_test.
void evaluate_final_test(const Session& session, const std::string& folder, const Outcome& outcome,
                         Reporter& reporter, const OpenGpu& open, std::span<const int> cores);

}  // namespace dpt
