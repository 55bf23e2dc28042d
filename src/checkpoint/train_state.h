// The position of a run between two steps. Together with weights and optimizer states, it lets a
// run continue as if it had never stopped.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/generator.h"
#include "optim/gradient_scaler.h"

namespace dpt {

// The best value of a metric in the evaluations of a run.
struct BestValue {
  std::string metric;  // as users write it; empty: none is followed
  double value = 0;
  int64_t epoch = 0, step = 0;  // of the evaluation; epoch: from 1, 0: there was none
  int64_t waited = 0;           // evaluations since then
};

// Dropout and random transforms need no state here: they are functions of step and epoch index.
struct TrainState {
  int64_t step = 0;      // steps done, over all epochs
  int64_t epoch = 0;     // the current epoch, or the next one between epochs; from 0
  int64_t of_epoch = 0;  // steps done in it
  double lr = 0;         // of the last step
  // Those of the last update, in the order of ParameterGroups::rates, if the optimizer needs them
  // (OptimizerType::uses_previous_lr); else empty.
  std::vector<double> previous_lr{};
  double loss_sum = 0, loss_weight = 0;  // sums for the epoch's mean loss
  double seconds = 0;                    // training time of the epoch so far
  int64_t skipped_before = 0;            // steps skipped for overflow before the epoch
  GradientScaler::State scaler{};
  std::vector<double> schedule{};  // Schedule::state
  std::vector<double> noise{};     // NoiseScale::state; empty: not measured
  Generator generator{0};          // corresponds to PyTorch's global generator
  Generator drawn_by{0};           // the generator before it drew the epoch's order
  int64_t metrics_bytes = 0;       // size of metrics.jsonl before the epoch's record

  // From the evaluations. Checkpoints of early versions lack these.
  int64_t evaluations = 0;         // made so far
  int64_t evaluated_after = -1;    // the step after which the last one was made
  BestValue best{}, early_stop{};  // by `save.best` and `early_stop`

  // The run to which the state belongs.
  std::string build;  // version()
  int64_t seed = 0;
  std::string optimizer;
  int64_t steps_of_epoch = 0;
  std::string samples{};  // order_of_samples(); empty: unknown
};

// A JSON object. Doubles keep every bit.
std::string to_json(const TrainState& state);
// Throws Error{data} that names the file and the missing or invalid key.
TrainState train_state_of(const std::string& json, const std::string& path);

}  // namespace dpt
