// What changes from step to step, in the GPU's memory, so that a captured graph of kernels is the
// same for all steps.
#pragma once

#include <stdint.h>

namespace dpt::cuda {

struct StepState {
  uint64_t seed, step;
  int64_t first_sample;  // of this device's rows, in the global batch
  int64_t position;      // of the first of them in the epoch's order
  double divisor;        // of the loss of the whole batch
  double loss_scale;
  double loss;             // of the whole batch
  double grad_scale;       // what gradients are multiplied by before the update
  double norm;             // of the gradients, where they are clipped by it or looked at
  int64_t updates;         // steps that changed the weights, over the whole run
  int64_t formula;         // the number of this step's optimizer formula in the launch's table
  int64_t growth_tracker;  // steps since the scale of the loss changed
  double first_loss, first_weight;  // of the first rank's rows, where there are several
  int32_t skip;        // not 0: no update, since the loss or the gradients are not finite
  int32_t bad;         // not 0: a class or an index of a batch was outside of its range
  int32_t halted;      // not 0: a loss was not finite, and nothing is updated any more
  int32_t last_chunk;  // not 0: of those that a pipeline is given at once
};

// What the host says of a step before it is launched.
struct StepEntry {
  uint64_t step;     // from 0, over all epochs
  int64_t position;  // of the device's first row in the epoch's order
  double divisor;    // of the loss, where the targets do not decide it
};

// What it is told afterwards.
struct StepReport {
  double loss, divisor, norm;
  int32_t skip, bad;
  double first_loss, first_weight;  // of the first rank's rows, where there are several
};

// Of an evaluation: the batches that are done, and their sums.
struct TestSums {
  int64_t batches;
  double loss, weight, correct;
};

}  // namespace dpt::cuda
