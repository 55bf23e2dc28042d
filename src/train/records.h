// What the training loop reports about a step and an epoch.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/step_executor.h"

namespace dpt {

struct StepRecord {
  int64_t step = 0, epoch = 0, of_epoch = 0;
  double loss = 0, lr = 0, norm = 0;
  double scale = 1;      // loss scale
  bool skipped = false;  // gradients were not finite, so the weights were not updated
  bool empty = false;    // the loss ignores all targets and is NaN
  const StepRows* rows = nullptr;
  double waited_s = 0;  // StepExecutor::data_seconds()
  // Only of steps that `log.every` selects. data_wait: share of the time since the last record.
  double data_wait = 0;
  std::vector<double> grad_norms{};     // of each trained parameter; empty: not measured
  std::optional<double> noise_scale{};  // NaN: unknown yet
};

// An evaluation between two steps of an epoch.
struct EvaluationRecord {
  int64_t evaluation = 0;  // number in the run, from 1
  int64_t step = 0, epoch = 0;
  Evaluation result{};
};

// The evaluation of the test set after the last step.
struct FinalRecord {
  int64_t step = 0, epoch = 0;  // of the evaluated weights
  bool best = false;            // they are those of the best evaluation, not the last ones
  Evaluation result{};
};

struct EpochRecord {
  int64_t epoch = 0, steps = 0;
  double loss = 0, lr = 0;
  double seconds = 0;    // of the epoch's steps, without evaluation
  double scale = 1;      // loss scale for the next step
  int64_t skipped = 0;   // skipped steps of this epoch
  double data_wait = 0;  // share of the time of its steps
  std::optional<Evaluation> evaluation{};
};

}  // namespace dpt
