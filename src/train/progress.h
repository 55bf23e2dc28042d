// How far a run is, how fast it goes and when it ends, and the lines that say so. Pure functions:
// the clock is an argument.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace dpt {

// What does not change during a run.
struct ProgressPlan {
  int64_t epochs = 1;
  int64_t steps_of_epoch = 1;
  int64_t steps = 1;           // of the whole run
  bool by_steps = false;       // `steps` ends the run in the middle of an epoch
  double samples_of_step = 1;  // the mean over an epoch
  int64_t evaluate_every = 0;  // epochs; 0: no evaluation
  int64_t test_batches = 0;    // of an evaluation
  double test_samples = 0;     // the same
  int64_t steps_before = 0;    // of the runs that this one continues
};

// Where a run is. Times are seconds of one steady clock.
struct ProgressState {
  int64_t epoch = 0;        // from 1; 0: not begun
  int64_t of_epoch = 0;     // steps of the epoch that are done
  int64_t step = 0;         // steps of the run that are done
  int64_t batches = 0;      // of the evaluation that are done
  int64_t evaluating = 0;   // 1: the steps of the epoch are done
  double loss = 0, lr = 0;  // of the last step
  double began_s = 0;       // when the training or the evaluation of this epoch began
  double trained_s = 0;     // duration of training before that, in this process
  double evaluated_s = -1;  // duration of the last evaluation; negative: there was none
};

struct ProgressFigures {
  double elapsed_s = 0;                        // since this process began to train
  std::optional<double> samples_per_second{};  // empty: no step is done
  std::optional<double> left_s{};              // until the whole run ends; empty: the same
};

// The recent speed: a mean over steps, those of half a minute ago weighted by 1/e. REQUIRES: calls
// in the order of time.
class Pace {
 public:
  Pace(const ProgressPlan& plan, double begun_s) : plan_(plan), begun_s_(begun_s) {}
  ProgressFigures figures(const ProgressState& state, double now_s);

 private:
  double evaluation_s() const;  // what an evaluation takes, by the last one or by the steps
  double left(const ProgressState& state, double now_s) const;

  ProgressPlan plan_;
  double begun_s_;
  double steps_ = 0, seconds_ = 0;  // weighted
  int64_t seen_step_ = -1;
  double seen_trained_s_ = 0;
  double evaluated_s_ = -1;
};

// "epoch 2/10, step 300/600"; where `steps` ends the run: "epoch 2/3, step 900/1000".
std::string place_text(const ProgressPlan& plan, int64_t epoch, int64_t of_epoch, int64_t step);

// For a terminal of that width (base/status_line.h).
std::string status_line(const ProgressPlan& plan, const ProgressState& state,
                        const ProgressFigures& figures, int columns);

// For a log, with its line break:
// "epoch 1/10, step 300/600: loss 0.4321, lr 0.001, 9,120 samples/s, elapsed 1:00, ETA 9:00".
std::string progress_line(const ProgressPlan& plan, const ProgressState& state,
                          const ProgressFigures& figures);

// "epoch 1/10, step 100/600: loss 0.4321, lr 0.001", with its line break.
struct StepLine {
  int64_t epoch = 0, of_epoch = 0, step = 0;
  double loss = 0, lr = 0;
  bool skipped = false;  // the weights were not updated, since gradients overflowed
};
std::string step_line(const ProgressPlan& plan, const StepLine& line);

// "epoch 1/10: 0.26 s, 230,000 samples/s, evaluation 0.02 s, lr 0.001", with its line break.
struct EpochLine {
  int64_t epoch = 0;
  double seconds = 0, samples_per_second = 0, lr = 0;
  std::optional<double> evaluation_s{};
};
std::string epoch_line(const ProgressPlan& plan, const EpochLine& line);

// A nan without its sign, which would be printed: "-nan".
double unsigned_nan(double number);

}  // namespace dpt
