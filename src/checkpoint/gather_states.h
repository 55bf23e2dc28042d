// Optimizer states that workers keep for themselves (own_states.h), brought together between two
// steps, and given back.
#pragma once

#include <span>
#include <vector>

#include "comm/team.h"
#include "engine/step_executor.h"
#include "session/buffers.h"
#include "session/session.h"

namespace dpt {

// For worker 0 all states one after another, each as the flat buffers hold it; for others nothing.
// Every worker calls it, on its own thread. Throws as Team::meet does.
std::vector<float> gather_states(const Session& session, const Buffers& buffers, Team team,
                                 int worker, StepExecutor& executor);

// The worker's own ones out of such.
void take_states(const Session& session, std::span<const float> all, StepExecutor& executor);

}  // namespace dpt
