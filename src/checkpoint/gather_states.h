// Collects optimizer states that each worker keeps for itself (Devices::own_states), between two
// steps, and gives them back.
#pragma once

#include <span>
#include <vector>

#include "comm/team.h"
#include "engine/step_executor.h"
#include "session/buffers.h"
#include "session/compiled_model.h"
#include "session/run_settings.h"

namespace dpt {

// Collects all states on worker 0: one state after another, each laid out like the flat buffers.
// Returns nothing on other workers. Every worker must call it, on its own thread. Throws like
// Team::barrier().
std::vector<float> gather_states(const RunSettings& settings, const CompiledModel& model,
                                 const Buffers& buffers, Team team, int worker,
                                 StepExecutor& executor);

// Copies this worker's part out of what gather_states() returned.
void take_states(const CompiledModel& model, std::span<const float> all, StepExecutor& executor);

}  // namespace dpt
