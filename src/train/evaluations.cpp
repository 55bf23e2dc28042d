#include "train/evaluations.h"

#include <cmath>

#include <fmt/format.h>

#include "base/count.h"
#include "base/fail.h"
#include "spec/metric_name.h"

namespace dpt {

bool take_in(BestValue& best, const Evaluation& evaluation, double min_delta, int64_t epoch,
             int64_t step) {
  const std::optional<double> value = evaluation.find(best.metric);
  require(value.has_value(), "an evaluation has the metrics that decisions need");
  const double gain = lower_is_better(best.metric) ? best.value - *value : *value - best.value;
  const bool first = best.epoch == 0 && !std::isnan(*value);
  if (!first && !(gain > min_delta)) {
    ++best.waited;
    return false;
  }
  best = {.metric = best.metric, .value = *value, .epoch = epoch, .step = step};
  return true;
}

Evaluations::Evaluations(const Session& session) : session_(session) {
  if (!session.data.test) return;
  best_.metric = metric_of_best(session.settings.spec, session.data);
  early_stop_.metric = metric_of_early_stop(session.settings.spec);
}

bool Evaluations::due_after_epoch(int64_t epoch, int64_t steps) const {
  const EvaluateSpec& evaluate = session_.settings.spec.evaluate;
  if (!session_.data.test) return false;
  return evaluate.every_steps > 0 ? steps % evaluate.every_steps == 0 : epoch % evaluate.every == 0;
}

bool Evaluations::due_between(int64_t steps) const {
  const int64_t every = session_.settings.spec.evaluate.every_steps;
  return session_.data.test && every > 0 && steps > 0 && steps % every == 0 && steps != after_;
}

bool Evaluations::add(const Evaluation& evaluation, int64_t epoch, int64_t step) {
  ++count_;
  after_ = step;
  if (!early_stop_.metric.empty())
    take_in(early_stop_, evaluation, session_.settings.spec.early_stop.min_delta, epoch, step);
  return !best_.metric.empty() && take_in(best_, evaluation, 0, epoch, step);
}

bool Evaluations::ends_run() const {
  const int64_t patience = session_.settings.spec.early_stop.patience;
  return !early_stop_.metric.empty() && patience > 0 && early_stop_.waited >= patience;
}

void Evaluations::write(TrainState& to) const {
  to.evaluations = count_;
  to.evaluated_after = after_;
  to.best = best_;
  to.early_stop = early_stop_;
}

// A run that is resumed with another metric starts to follow it anew.
void Evaluations::read(const TrainState& from) {
  count_ = from.evaluations;
  after_ = from.evaluated_after;
  if (from.best.metric == best_.metric) best_ = from.best;
  if (from.early_stop.metric == early_stop_.metric) early_stop_ = from.early_stop;
}

std::string text_of(const SessionData& data, const BestValue& best) {
  if (best.epoch == 0)
    return fmt::format("{} {} was nan in all of {}", data.evaluated_set(), best.metric,
                       counted(best.waited, "evaluation"));
  return fmt::format("{} {} {:.4f} in epoch {}", data.evaluated_set(), best.metric, best.value,
                     best.epoch);
}

}  // namespace dpt
