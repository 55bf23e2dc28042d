// What the training loop reports about a step and an epoch.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/step_executor.h"

namespace dpt {

struct StepRecord {
  int64_t step = 0, epoch = 0, of_epoch = 0;
  double loss = 0, lr = 0, norm = 0;
  double scale = 1;      // loss scale
  bool skipped = false;  // gradients were not finite, so the weights were not updated
  bool empty = false;    // the loss ignores all targets and is NaN
  const StepRows* rows = nullptr;
};

struct EpochRecord {
  int64_t epoch = 0, steps = 0;
  double loss = 0, lr = 0;
  double seconds = 0;   // of the epoch's steps, without evaluation
  double scale = 1;     // loss scale for the next step
  int64_t skipped = 0;  // skipped steps of this epoch
  std::optional<Evaluation> evaluation{};
};

}  // namespace dpt
