// Chooses the GPUs of a session, and rejects what training on GPUs does not support.
#pragma once

#include "session/session.h"

namespace dpt {

// Sets the session's device, and asks CUDA for its GPUs if needed. If `device: auto` becomes a CPU
// although there is a GPU, `note` says why. Throws Error{device} if the device is not available.
void choose_device(Session& session, const SessionQuery& query);

// Assigns a GPU to each worker, and chooses who sums gradients. Errors in the spec are reported to
// `d`. Throws Error{device} if GPUs or NCCL are missing. REQUIRES: the topology is set.
void place_on_gpus(Session& session, const SessionQuery& query, Diagnostics& d);

}  // namespace dpt
