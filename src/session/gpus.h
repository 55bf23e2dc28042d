// Which GPUs a session trains on, and what training on them does not do.
#pragma once

#include "session/session.h"

namespace dpt {

// The session's device, and what CUDA shows where it is asked. A CPU in the place of a GPU is
// explained in `note`. Throws Error{device} for a device that can't be had.
void choose_device(Session& session, const SessionQuery& query);

// A GPU for each replica, and who sums their gradients. REQUIRES: the topology is there. Complaints
// go to `d`. Throws Error{device} for GPUs that are not there, or without NCCL.
void place_on_gpus(Session& session, const SessionQuery& query, Diagnostics& d);

}  // namespace dpt
