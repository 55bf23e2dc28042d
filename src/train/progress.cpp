#include "train/progress.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/status_line.h"

namespace dpt {
namespace {

constexpr double kMemory = 30;  // seconds of training, after which a step's weight is 1/e

std::string loss_text(double loss) {
  constexpr double kMost = 1e6;  // larger losses are shown with exponents
  return std::abs(loss) < kMost ? fmt::format("loss {:.4f}", loss)
                                : fmt::format("loss {:.4g}", unsigned_nan(loss));
}
constexpr double kShownWait = 0.01;  // smaller shares of waiting for data are not shown
std::string data_text(double share) { return fmt::format("data {:.0f} %", 100 * share); }
std::string lr_text(double lr) { return fmt::format("lr {:.4g}", lr); }
std::string step_text(const ProgressPlan& plan, int64_t of_epoch, int64_t step) {
  return plan.by_steps ? fmt::format("step {}/{}", step, plan.steps)
                       : fmt::format("step {}/{}", of_epoch, plan.steps_of_epoch);
}

double quotient(int64_t a, int64_t b) {
  return b > 0 ? static_cast<double>(a) / static_cast<double>(b) : 0;
}

}  // namespace

std::string seconds_text(double seconds) {
  const int digits = seconds < 10 ? 2 : seconds < 100 ? 1 : 0;
  return fmt::format("{:.{}f} s", seconds, digits);
}

double unsigned_nan(double number) {
  return std::isnan(number) ? std::numeric_limits<double>::quiet_NaN() : number;
}

ProgressFigures SpeedEstimate::figures(const ProgressState& state, double now_s) {
  const double trained = state.trained_s + (state.evaluating != 0 ? 0 : now_s - state.began_s);
  evaluated_s_ = state.evaluated_s;
  if (seen_step_ < 0) seen_step_ = plan_.steps_before;
  if (state.step > seen_step_) {
    const double seconds = std::max(0.0, trained - seen_trained_s_);
    const double kept = std::exp(-seconds / kMemory);
    steps_ = steps_ * kept + static_cast<double>(state.step - seen_step_);
    seconds_ = seconds_ * kept + seconds;
    waited_ = waited_ * kept + std::max(0.0, state.waited_s - seen_waited_s_);
    seen_step_ = state.step;
    seen_trained_s_ = trained;
    seen_waited_s_ = state.waited_s;
  }
  ProgressFigures out{.elapsed_s = now_s - begun_s_};
  if (steps_ == 0 || seconds_ <= 0) return out;
  out.samples_per_second = steps_ / seconds_ * plan_.samples_of_step;
  out.left_s = left(state, now_s);
  out.data_wait = std::min(1.0, waited_ / seconds_);
  return out;
}

double SpeedEstimate::evaluation_s() const {
  if (evaluated_s_ >= 0) return evaluated_s_;
  // The forward pass takes about a third of a step.
  return plan_.test_samples / plan_.samples_of_step * (seconds_ / steps_) / 3;
}

double SpeedEstimate::left(const ProgressState& state, double now_s) const {
  const double a_step = seconds_ / steps_;
  double out = static_cast<double>(std::max<int64_t>(0, plan_.steps - state.step)) * a_step;
  if (state.evaluating == 0) {
    // Subtract the part of the current step that is done.
    const double since = state.trained_s + now_s - state.began_s - seen_trained_s_;
    out -= std::clamp(since, 0.0, state.step < plan_.steps ? a_step : 0);
  }
  const auto evaluations = static_cast<double>(evaluations_left(state));
  if (state.evaluating != 0) {
    const double spent = now_s - state.began_s;
    out += state.batches > 0 ? spent * quotient(plan_.test_batches - state.batches, state.batches)
                             : std::max(0.0, evaluation_s() - spent);
  }
  return evaluations > 0 ? out + evaluations * evaluation_s() : out;
}

// Without the one that is being made.
int64_t SpeedEstimate::evaluations_left(const ProgressState& state) const {
  if (const int64_t every = plan_.evaluate_every_steps; every > 0)
    return plan_.steps / every - state.step / every;
  if (plan_.evaluate_every == 0) return 0;
  const int64_t all = plan_.epochs / plan_.evaluate_every;
  const int64_t before = std::max<int64_t>(0, state.epoch - 1) / plan_.evaluate_every;
  const bool done = state.of_epoch == plan_.steps_of_epoch &&
                    state.epoch % plan_.evaluate_every == 0 && state.evaluated_s >= 0;
  return std::max<int64_t>(0, all - before - (state.evaluating != 0 || done ? 1 : 0));
}

std::string epoch_text(const ProgressPlan& plan, int64_t epoch) {
  return fmt::format("epoch {}/{}", epoch, plan.epochs);
}

std::string position_text(const ProgressPlan& plan, int64_t epoch, int64_t of_epoch, int64_t step) {
  return fmt::format("{}, {}", epoch_text(plan, epoch), step_text(plan, of_epoch, step));
}

std::string status_line(const ProgressPlan& plan, const ProgressState& s,
                        const ProgressFigures& figures, int columns) {
  enum Importance : int { place, work, loss, eta, bar, rate, elapsed, data, lr };
  const bool evaluating = s.evaluating != 0;
  const double part = evaluating      ? quotient(s.batches, plan.test_batches)
                      : plan.by_steps ? quotient(s.step, plan.steps)
                                      : quotient(s.of_epoch, plan.steps_of_epoch);
  std::vector<StatusField> fields = {
      {.text = epoch_text(plan, s.epoch), .importance = place, .fraction = {}},
      {.text = "", .importance = bar, .fraction = part},
      {.text = evaluating ? fmt::format("evaluating {}/{}", s.batches, plan.test_batches)
                          : step_text(plan, s.of_epoch, s.step),
       .importance = work,
       .fraction = {}}};
  const bool stepped = s.step > plan.steps_before;
  // The last step's loss says little about an evaluation.
  if (stepped)
    fields.push_back(
        {.text = loss_text(s.loss), .importance = evaluating ? rate : loss, .fraction = {}});
  if (figures.left_s)
    fields.push_back(
        {.text = "ETA " + clock_duration(*figures.left_s), .importance = eta, .fraction = {}});
  fields.push_back({.text = "elapsed " + clock_duration(figures.elapsed_s),
                    .importance = elapsed,
                    .fraction = {}});
  if (figures.samples_per_second && !evaluating)
    fields.push_back({.text = rounded_short(*figures.samples_per_second) + " samples/s",
                      .importance = rate,
                      .fraction = {}});
  if (figures.data_wait >= kShownWait && !evaluating)
    fields.push_back({.text = data_text(figures.data_wait), .importance = data, .fraction = {}});
  if (stepped && !evaluating)
    fields.push_back({.text = lr_text(s.lr), .importance = lr, .fraction = {}});
  return fit_fields(std::move(fields), columns);
}

std::string progress_line(const ProgressPlan& plan, const ProgressState& s,
                          const ProgressFigures& figures) {
  std::vector<std::string> parts;
  const bool evaluating = s.evaluating != 0;
  if (evaluating)
    parts.push_back(fmt::format("evaluated {} of {} batches", s.batches, plan.test_batches));
  else if (s.step > plan.steps_before)
    parts.insert(parts.end(), {loss_text(s.loss), lr_text(s.lr)});
  if (figures.samples_per_second && !evaluating)
    parts.push_back(samples_per_second(*figures.samples_per_second));
  if (figures.data_wait >= kShownWait && !evaluating) parts.push_back(data_text(figures.data_wait));
  parts.push_back("elapsed " + clock_duration(figures.elapsed_s));
  if (figures.left_s) parts.push_back("ETA " + clock_duration(*figures.left_s));
  return fmt::format("{}: {}\n", position_text(plan, s.epoch, s.of_epoch, s.step),
                     fmt::join(parts, ", "));
}

std::string step_line(const ProgressPlan& plan, const StepLine& l) {
  return fmt::format("{}: {}, {}{}\n", position_text(plan, l.epoch, l.of_epoch, l.step),
                     loss_text(l.loss), lr_text(l.lr), l.skipped ? ", skipped" : "");
}

std::string epoch_figures(const EpochFigures& f) {
  return fmt::format(
      "{}, {}, {}{}", seconds_text(f.seconds), samples_per_second(f.samples_per_second),
      f.evaluation_s ? fmt::format("evaluation {}, ", seconds_text(*f.evaluation_s)) : "",
      lr_text(f.lr));
}

}  // namespace dpt
