// Where a run stands between two steps, beside its weights and optimizer states: with these, all
// that it needs to go on as if it had never stopped.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/generator.h"
#include "optim/gradient_scaler.h"

namespace dpt {

// Dropout and random transforms need nothing of it: they are functions of steps and epochs.
struct TrainState {
  int64_t step = 0;                      // that are done, over all epochs
  int64_t epoch = 0;                     // that is begun, or comes next; from 0
  int64_t of_epoch = 0;                  // steps of it that are done
  double lr = 0;                         // of the last step
  double loss_sum = 0, loss_weight = 0;  // of the epoch's mean
  double seconds = 0;                    // that the epoch has taken
  int64_t skipped_before = 0;            // steps, before the epoch
  GradientScaler::State scaler{};
  std::vector<double> schedule{};  // Schedule::state
  Generator generator{0};          // torch's global one
  Generator drawn_by{0};           // as it was before it drew the epoch's order
  int64_t metrics_bytes = 0;       // of metrics.jsonl, before the epoch's record

  // What it belongs to.
  std::string build;  // version()
  int64_t seed = 0;
  std::string optimizer;
  int64_t steps_of_epoch = 0;
  std::string samples{};  // order_of_samples(); empty: not known
};

// A map of JSON; doubles as they are, to the last bit.
std::string to_json(const TrainState& state);
// Throws Error{data} that names the file, and the key that is not there or holds something else.
TrainState train_state_of(const std::string& json, const std::string& path);

}  // namespace dpt
