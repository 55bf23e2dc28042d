#include "optim/schedule.h"

#include <algorithm>

#include <fmt/format.h>

#include "formats/python_call.h"
#include "optim/optimizer.h"

namespace dpt {
namespace {

// The RegistryEntry of this Choice is the base of a ScheduleType.
const ScheduleType& type_of(const ScheduleSpec& spec) {
  return static_cast<const ScheduleType&>(*spec.schedule.what);
}

// How many intervals remain after the warm-up.
int64_t after_warmup(const ScheduleSpec& spec, int64_t total) {
  return std::max<int64_t>(1, total - spec.warmup);
}

class Constant : public Schedule {
 public:
  explicit Constant(double base) : base_(base) {}
  double lr(int64_t) override { return base_; }

 private:
  double base_;
};

// Linear warm-up before another schedule, which then counts from 0: PyTorch's SequentialLR of a
// LinearLR and the schedule.
class Warmup : public Schedule {
 public:
  Warmup(std::unique_ptr<Schedule> then, double base, int64_t length, double factor)
      : then_(std::move(then)), base_(base), length_(length), factor_(factor) {}

  double lr(int64_t k) override {
    warm_ = k >= length_;
    if (warm_) return then_->lr(k - length_);
    return base_ *
           (factor_ + (1 - factor_) * static_cast<double>(k) / static_cast<double>(length_));
  }
  std::optional<double> momentum(int64_t k) override {
    return then_->momentum(std::max<int64_t>(0, k - length_));
  }
  // Losses during the warm-up are not a baseline for later progress.
  void metric(double value) override {
    if (warm_) then_->metric(value);
  }
  std::vector<double> state() const override {
    std::vector<double> out = then_->state();
    out.push_back(warm_ ? 1 : 0);
    return out;
  }
  std::string restore(std::span<const double> state) override {
    if (state.empty()) return "";
    warm_ = state.back() != 0;
    return then_->restore(state.first(state.size() - 1));
  }

 private:
  std::unique_ptr<Schedule> then_;
  double base_;
  int64_t length_;
  double factor_;
  bool warm_ = false;  // the last lr() was for an interval after the warm-up
};

}  // namespace

std::unique_ptr<Schedule> make_schedule(const ScheduleSpec& spec, double base_lr, int64_t total) {
  std::unique_ptr<Schedule> schedule =
      spec.schedule ? type_of(spec).make(spec.schedule.settings, base_lr, after_warmup(spec, total))
                    : std::make_unique<Constant>(base_lr);
  if (spec.warmup == 0) return schedule;
  // As in PyTorch, where OneCycleLR's constructor sets the learning rate that LinearLR multiplies.
  const bool own_rate = spec.schedule && type_of(spec).own_rate;
  const double goal = own_rate ? schedule->lr(0) : base_lr;
  return std::make_unique<Warmup>(std::move(schedule), goal, spec.warmup, spec.warmup_factor);
}

std::string_view schedule_interval(const ScheduleSpec& spec) {
  if (!spec.interval.empty()) return spec.interval;
  return spec.schedule ? type_of(spec).interval : "epoch";
}

std::string torch_schedule(const ScheduleSpec& spec, int64_t total) {
  std::string schedule =
      spec.schedule ? type_of(spec).torch(spec.schedule.settings, after_warmup(spec, total)) : "";
  if (spec.warmup == 0 || (spec.schedule && type_of(spec).needs_metric)) return schedule;
  if (schedule.empty()) return torch_warmup(spec);
  // LinearLR warms up to the learning rate that it finds, so a schedule that sets its own when it
  // is constructed comes first.
  if (spec.schedule && type_of(spec).own_rate)
    return fmt::format("lr_scheduler.SequentialLR(optimizer, [{}, {}][::-1], milestones=[{}])",
                       schedule, torch_warmup(spec), spec.warmup);
  return fmt::format("lr_scheduler.SequentialLR(optimizer, [{}, {}], milestones=[{}])",
                     torch_warmup(spec), schedule, spec.warmup);
}

std::string torch_warmup(const ScheduleSpec& spec) {
  return PythonCall("lr_scheduler.LinearLR")
      .expression("optimizer")
      .key("start_factor", spec.warmup_factor)
      .key("total_iters", spec.warmup)
      .str();
}

void check_schedule(const Spec& spec, Diagnostics& d) {
  const Choice& schedule = spec.schedule.schedule;
  if (!schedule) return;
  const ScheduleType& type = type_of(spec.schedule);
  if (type.needs_metric && spec.schedule.interval == "step")
    d.error(schedule.where, fmt::format("schedule '{}' uses the loss of each epoch, so its "
                                        "interval must be 'epoch', not 'step'",
                                        type.name));
  const bool cycles = type.make(schedule.settings, 1, 1)->momentum(0).has_value();
  if (!cycles || !spec.optimizer) return;
  const auto& optimizer = static_cast<const OptimizerType&>(*spec.optimizer.what);
  if (!optimizer.has_momentum)
    d.error(schedule.where,
            fmt::format("schedule '{}' cycles momentum or beta1, which optimizer '{}' does not "
                        "support; write 'cycle_momentum: false'",
                        type.name, optimizer.name));
}

}  // namespace dpt
