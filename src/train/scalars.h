// The numbers of a run's records over its steps, by the names of metrics.jsonl: "loss",
// "validation.loss", "test.accuracy", "lr", "grad_norms.lin1.weight"; the loss of a step is
// "step.loss".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/tensorboard.h"
#include "train/metrics_record.h"

namespace dpt {

struct ScalarsOfRecord {
  int64_t step = 0;  // of the whole run, when it was recorded
  std::vector<tensorboard::Scalar> values;
};

// Reads the records of a run in their order.
class ScalarReader {
 public:
  // Empty if the record has no position.
  std::optional<ScalarsOfRecord> read(const MetricsRecord& record);

  int64_t steps() const { return steps_; }  // of the epochs that were read
  // Where the records of earlier epochs are missing: the steps of these.
  void set_steps(int64_t steps) { steps_ = steps; }

 private:
  int64_t steps_ = 0;
  bool has_steps_ = false;  // there are records of steps, with the learning rate at each
};

}  // namespace dpt
