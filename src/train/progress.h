// How far a run is, how fast it is and when it ends, and the text lines for that. Pure functions:
// the current time is an argument.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace dpt {

// Facts that do not change during a run.
struct ProgressPlan {
  int64_t epochs = 1;
  int64_t steps_of_epoch = 1;
  int64_t steps = 1;                 // of the whole run
  bool by_steps = false;             // `steps` ends the run, maybe in the middle of an epoch
  double samples_of_step = 1;        // mean over an epoch
  int64_t evaluate_every = 0;        // in epochs; 0: no evaluation by epochs
  int64_t evaluate_every_steps = 0;  // 0: no evaluation by steps
  int64_t test_batches = 0;          // per evaluation
  double test_samples = 0;           // per evaluation
  int64_t steps_before = 0;          // steps of the runs that this one continues
};

// The current position of a run. Times are in seconds, of one steady clock.
struct ProgressState {
  int64_t epoch = 0;        // from 1; 0: none begun
  int64_t of_epoch = 0;     // steps of the epoch done
  int64_t step = 0;         // steps of the run done
  int64_t batches = 0;      // batches of the evaluation done
  int64_t evaluating = 0;   // 1: evaluating
  double loss = 0, lr = 0;  // of the last step
  double waited_s = 0;      // of training, spent waiting for data, in this process
  double began_s = 0;       // when the training or the evaluation of this epoch began
  double trained_s = 0;     // duration of training before that, in this process
  double evaluated_s = -1;  // duration of the last evaluation; negative: none yet
};

struct ProgressFigures {
  double elapsed_s = 0;                        // since this process began to train
  std::optional<double> samples_per_second{};  // empty: no step is done yet
  std::optional<double> left_s{};              // until the run ends; empty: unknown yet
  double data_wait = 0;                        // share of the time that steps wait for data
};

// Measures recent speed: a mean over steps, in which a step of half a minute ago has weight 1/e.
// REQUIRES: calls with increasing times.
class SpeedEstimate {
 public:
  SpeedEstimate(const ProgressPlan& plan, double begun_s) : plan_(plan), begun_s_(begun_s) {}
  ProgressFigures figures(const ProgressState& state, double now_s);

 private:
  double evaluation_s() const;  // from the last evaluation, or estimated from steps
  double left(const ProgressState& state, double now_s) const;
  int64_t evaluations_left(const ProgressState& state) const;

  ProgressPlan plan_;
  double begun_s_;
  double steps_ = 0, seconds_ = 0, waited_ = 0;  // weighted sums
  int64_t seen_step_ = -1;
  double seen_trained_s_ = 0, seen_waited_s_ = 0;
  double evaluated_s_ = -1;
};

// "epoch 2/10, step 300/600"; if `steps` ends the run, "epoch 2/3, step 900/1000".
std::string position_text(const ProgressPlan& plan, int64_t epoch, int64_t of_epoch, int64_t step);

// The status line for a terminal of this width (base/status_line.h).
std::string status_line(const ProgressPlan& plan, const ProgressState& state,
                        const ProgressFigures& figures, int columns);

// A line for a log, including its line break:
// "epoch 1/10, step 300/600: loss 0.4321, lr 0.001, 9,120 samples/s, elapsed 1:00, ETA 9:00".
std::string progress_line(const ProgressPlan& plan, const ProgressState& state,
                          const ProgressFigures& figures);

// "epoch 1/10, step 100/600: loss 0.4321, lr 0.001", including its line break.
struct StepLine {
  int64_t epoch = 0, of_epoch = 0, step = 0;
  double loss = 0, lr = 0;
  bool skipped = false;  // gradients overflowed, so the weights were not updated
};
std::string step_line(const ProgressPlan& plan, const StepLine& line);

// "0.26 s, 230,000 samples/s, evaluation 0.02 s, lr 0.001".
struct EpochFigures {
  double seconds = 0, samples_per_second = 0, lr = 0;
  std::optional<double> evaluation_s{};
};
std::string epoch_figures(const EpochFigures& figures);

std::string epoch_text(const ProgressPlan& plan, int64_t epoch);  // "epoch 2/10"

// "0.26 s", "26.1 s", "2612 s".
std::string seconds_text(double seconds);

// Makes NaN positive: otherwise it could be printed as "-nan".
double unsigned_nan(double number);

}  // namespace dpt
