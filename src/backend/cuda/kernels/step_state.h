// What changes from step to step, in the GPU's memory, so that a captured graph of kernels is the
// same for all steps.
#pragma once

#include <stdint.h>

namespace dpt::cuda {

struct StepState {
  uint64_t seed, step;
  int64_t first_sample;  // of this device's rows, in the global batch
  int64_t position;      // of the first of them in the epoch's order
  double loss_scale;
  double loss;        // of the whole batch
  double grad_scale;  // what gradients are multiplied by before the update
  double norm;        // of the gradients, where they are clipped by it or looked at
  int32_t skip;       // not 0: no update, since the loss or the gradients are not finite
  int32_t bad;        // not 0: a class or an index of the batch is outside of its range
};

}  // namespace dpt::cuda
