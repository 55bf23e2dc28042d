// The memory that a whole run takes, estimated before anything is allocated.
#pragma once

#include <algorithm>

#include "session/session.h"

namespace dpt {

// Bytes that a run takes, all ranks together.
struct RunMemory {
  double weights = 0, gradients = 0;
  double states = 0;       // in `shared`, or in `workers` where they are sharded
  double shared = 0;       // these and what workers meet with
  double activations = 0;  // of all shards
  double data = 0;         // the data sets
  double program = 0;  // what this process occupies now beside them: code, libraries, the session
  double workers = 0;  // orders of samples, stacks, what workers keep for themselves
  double before = 0;   // the most that this process has occupied so far: loading takes more
  double peak() const { return std::max(before, shared + activations + data + program + workers); }
};
// Throws Error{memory} as check_memory() does.
RunMemory memory_of(const Session& session);

// Throws Error{memory} where a run would need more than is free. Allocates nothing.
void check_memory(const Session& session);

}  // namespace dpt
