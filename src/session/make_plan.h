// The plan of a session: what its mode makes of the model's training step.
#pragma once

#include "graph/program/plan.h"
#include "session/session.h"

namespace dpt {

// REQUIRES: the parts of the session that stand before the plan are made.
Plan make_plan(const Session& session);

// Barriers of a step, with those at sync points: GPUs sum there without one.
int barriers_of_step(const Session& session);

}  // namespace dpt
