// The registry of `schedule:`. Each file in optim/schedules/ holds one ScheduleType.
#pragma once

#include <any>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "spec/registry_entry.h"
#include "spec/spec.h"

namespace dpt {

// The learning rate over a run. Each worker has its own schedule; all stay equal, because they are
// functions of the same numbers. Not thread-safe.
class Schedule {
 public:
  virtual ~Schedule() = default;
  // The learning rate after `k` intervals (epochs or steps), k = 0, 1, ... Call it with ascending
  // k.
  virtual double lr(int64_t k) = 0;
  // The momentum or beta1 after k intervals, which one_cycle sets. Empty: the optimizer's own.
  virtual std::optional<double> momentum(int64_t) { return {}; }
  // For reduce_on_plateau: receives the loss of each evaluation, or the loss of each epoch if
  // the spec has no evaluation. It affects the next lr().
  virtual void metric(double) {}
  // What lr() remembers of the losses so far, for checkpoints; may be empty. restore() ignores the
  // state of another kind of schedule. It returns a message for the user, or an empty string.
  virtual std::vector<double> state() const { return {}; }
  virtual std::string restore(std::span<const double>) { return ""; }
};

struct ScheduleType : RegistryEntry {
  // total: number of intervals of the run.
  std::unique_ptr<Schedule> (*make)(const std::any& settings, double base_lr, int64_t total);
  std::string_view interval = "epoch";  // default unit of k: "epoch" or "step"
  // The schedule as a Python expression: "lr_scheduler.StepLR(optimizer, step_size=30)".
  std::string (*torch)(const std::any& settings, int64_t total);
  bool needs_metric = false;  // PyTorch's step() takes a metric, once per epoch
  // For needs_metric: whether a larger metric is better.
  bool (*takes_larger)(const std::any& settings) = nullptr;
  bool own_rate = false;  // starts from its own learning rate, not the optimizer's
  // For own_rate: the base learning rates of parameters in no group and of each of the spec's
  // parameter_groups; one: of all parameters. Null: one.
  std::vector<double> (*rates)(const std::any& settings) = nullptr;
};

std::span<const ScheduleType> schedule_table();  // generated from optim/meson.build
std::vector<const RegistryEntry*> schedule_registry();

// The schedule of a spec with its warm-up; constant if the spec names none. total: number of
// intervals of the run, including warm-up.
std::unique_ptr<Schedule> make_schedule(const ScheduleSpec& spec, double base_lr, int64_t total);

// The unit of k in this spec: "epoch" or "step".
std::string_view schedule_interval(const ScheduleSpec& spec);

// The schedule as a call in PyTorch whose arguments are its keys.
template <class Settings>
std::string torch_call(const Settings& settings) {
  std::string_view callee = Settings::kUsage.callee();  // "optim.lr_scheduler.StepLR"
  callee.remove_prefix(callee.find('.') + 1);
  return PythonCall(callee)
      .expression("optimizer")
      .keys(Settings::keys().arguments(settings))
      .str();
}

// The schedule as a Python expression; empty if the learning rate is constant. A schedule that
// needs a metric cannot be chained: its warm-up is torch_warmup(), which must be stepped
// separately.
std::string torch_schedule(const ScheduleSpec& spec, int64_t total);
std::string torch_warmup(const ScheduleSpec& spec);

// Checks that involve several keys: one_cycle needs an optimizer with momentum or beta1, and
// reduce_on_plateau counts epochs.
void check_schedule(const Spec& spec, Diagnostics& d);

}  // namespace dpt
