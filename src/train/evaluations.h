// When a run evaluates, and what follows from the numbers: which weights are the best, and whether
// the run ends early.
#pragma once

#include <cstdint>
#include <string>

#include "checkpoint/train_state.h"
#include "engine/step_executor.h"
#include "session/session.h"

namespace dpt {

// Takes the metric of an evaluation into `best`, and returns whether it is the best value so far:
// better by more than `min_delta`. NaN never is. REQUIRES: the evaluation has best.metric.
bool take_in(BestValue& best, const Evaluation& evaluation, double min_delta, int64_t epoch,
             int64_t step);

// Every worker has one. All decide alike, since the numbers of an evaluation are the same on every
// worker. Epochs count from 1, steps over the whole run.
class Evaluations {
 public:
  explicit Evaluations(const Session& session);

  // Whether an evaluation is due when an epoch has ended, or the run has by `steps`.
  bool due_after_epoch(int64_t epoch, int64_t steps) const;
  // Whether one is due between two steps of an epoch, and has not been made.
  bool due_between(int64_t steps) const;

  // Takes in an evaluation; returns whether its weights are to be kept as the best.
  bool add(const Evaluation& evaluation, int64_t epoch, int64_t step);
  bool ends_run() const;                           // by early stopping
  int64_t count() const { return count_; }         // of the whole run
  const BestValue& best() const { return best_; }  // metric empty: best weights are not kept
  const BestValue& early_stop() const { return early_stop_; }

  void write(TrainState& to) const;
  void read(const TrainState& from);

 private:
  const Session& session_;
  int64_t count_ = 0, after_ = -1;  // after_: the step after which the last one was made
  BestValue best_, early_stop_;
};

// "validation accuracy 0.8912 in epoch 7"; of metrics that were never a number: "validation auc was
// nan in all of 5 evaluations".
std::string text_of(const SessionData& data, const BestValue& best);

}  // namespace dpt
