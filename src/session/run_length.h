// RunLength: how many steps and epochs a run has.
#pragma once

#include <cstdint>

#include "spec/spec.h"

namespace dpt {

struct RunLength {
  int64_t epochs = 0;  // including one that `steps` ends early
  int64_t steps = 0;   // of the whole run
};

// The run ends by `epochs` or `steps` of the spec, whichever comes first. Reports to `d` more than
// 2^40 steps. steps_of_epoch: at least 1.
RunLength make_length(const Spec& spec, int64_t steps_of_epoch, Diagnostics& d);

}  // namespace dpt
