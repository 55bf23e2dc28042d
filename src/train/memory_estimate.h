// Estimates the memory of a whole run before anything is allocated.
#pragma once

#include <algorithm>

#include "session/session.h"

namespace dpt {

// Memory of a run over all ranks, in bytes.
struct MemoryEstimate {
  double weights = 0, gradients = 0;
  double states = 0;       // part of `shared`, or of `workers` if states are sharded
  double shared = 0;       // weights, gradients, states, and the memory of barriers
  double activations = 0;  // of all shards
  double data = 0;         // data sets
  double program = 0;      // current use of this process without the data: code, libraries, session
  double workers = 0;      // orders of samples, stacks, and workers' own states
  double before = 0;       // peak of this process so far: loading takes more
  double peak() const { return std::max(before, shared + activations + data + program + workers); }
};
// Throws Error{memory} like check_memory().
MemoryEstimate estimate_memory(const Session& session);

// Throws Error{memory} if a run would need more memory than is free. Allocates nothing.
void check_memory(const Session& session);

}  // namespace dpt
