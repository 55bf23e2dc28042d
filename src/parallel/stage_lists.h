// The lists of a pipeline's devices.
#pragma once

#include "parallel/rewrites.h"

namespace dpt {

// The list of a device that shares memory with its neighbors: each operation waits for the one that
// it follows on another device, and is recorded for those that follow it.
Plan::Steps stages_in_shared_memory(const PlanTarget& target, int device);

// The list of a GPU whose neighbors are other processes. All GPUs go through the operations of all
// stages in one order, Note [one list] in engine/gpu/stage_links.h.
Plan::Steps stages_that_send(const PlanTarget& target, int device);

}  // namespace dpt
