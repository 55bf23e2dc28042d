// What the training loop reports of a step and of an epoch.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/step_executor.h"

namespace dpt {

struct StepRecord {
  int64_t step = 0, epoch = 0, of_epoch = 0;
  double loss = 0, lr = 0, norm = 0;
  double scale = 1;      // of the loss
  bool skipped = false;  // the gradients were not finite
  bool empty = false;    // the loss ignores all targets, and is nan
  const StepRows* rows = nullptr;
};

struct EpochRecord {
  int64_t epoch = 0, steps = 0;
  double loss = 0, lr = 0;
  double seconds = 0;   // of its steps
  double scale = 1;     // of the loss, for the next step
  int64_t skipped = 0;  // steps of this epoch
  std::optional<Evaluation> evaluation{};
};

}  // namespace dpt
