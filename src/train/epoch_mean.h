// The mean loss of an epoch.
#pragma once

#include <cmath>

#include "checkpoint/train_state.h"
#include "engine/step_executor.h"
#include "session/session.h"

namespace dpt {

// The mean loss that an epoch's line shows; the same on every worker.
class EpochMean {
 public:
  explicit EpochMean(const Session& s)
      : rank0_(s.settings.spec.log.loss == "rank0"), weighted_(s.model.divisor != Divisor::one) {}
  void add(const StepResult& step) {
    const double loss = rank0_ ? step.rank0_loss : step.loss;
    if (std::isnan(loss)) return;  // all targets (or all of rank 0's) are ignored
    const double weight = !rank0_ && weighted_ ? step.weight : 1;
    sum_ += loss * weight;
    weight_ += weight;
  }
  double value() const { return sum_ / weight_; }  // NaN without any step, as in PyTorch
  void write(TrainState& to) const { to.loss_sum = sum_, to.loss_weight = weight_; }
  void read(const TrainState& from) { sum_ = from.loss_sum, weight_ = from.loss_weight; }

 private:
  bool rank0_ = false, weighted_ = false;
  double sum_ = 0, weight_ = 0;
};

}  // namespace dpt
