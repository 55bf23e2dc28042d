// What changes from step to step, in GPU memory, so that one captured graph works for all steps.
#pragma once

#include <stdint.h>

namespace dpt::cuda {

struct StepState {
  uint64_t seed, step;
  int64_t first_sample;  // index of this device's first row in the global batch
  int64_t position;      // index of that row in the epoch's order
  double divisor;        // of the loss of the global batch
  double loss_scale;
  double loss;                      // of the global batch
  double grad_scale;                // factor of the gradients in the update
  double norm;                      // of the gradients; only set if it is needed
  int64_t updates;                  // steps that changed the weights, in the whole run
  int64_t formula;                  // index of this step's formula in the launch's table
  int64_t growth_tracker;           // steps since the loss scale changed
  double first_loss, first_weight;  // of rank 0's rows, if there are several ranks
  int32_t skip;        // nonzero: no update, since the loss or a gradient is not finite
  int32_t bad;         // nonzero: a class or an index of a batch was out of range
  int32_t halted;      // nonzero: a loss was not finite; no more updates
  int32_t last_chunk;  // nonzero: the last chunk of those that a pipeline processes together
};

// What the host tells the GPU about a step before it is launched.
struct StepEntry {
  uint64_t step;     // from 0, over all epochs
  int64_t position;  // index of the device's first row in the epoch's order
  double divisor;    // of the loss, unless the targets determine it
};

// What the GPU reports to the host after a step.
struct StepReport {
  double loss, divisor, norm;
  int32_t skip, bad;
  double first_loss, first_weight;  // of rank 0's rows, if there are several ranks
};

// Evaluation: the number of completed batches, and their sums.
struct TestSums {
  int64_t batches;
  double loss, weight, correct;
};

}  // namespace dpt::cuda
