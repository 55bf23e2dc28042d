// What a spec can name under `schedule:`. One file in optim/schedules/ holds one ScheduleType.
#pragma once

#include <any>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "spec/nameable.h"
#include "spec/spec.h"

namespace dpt {

// The learning rate over a run. Every worker holds its own and all agree, since each is a function
// of the same numbers. Not thread-safe.
class Schedule {
 public:
  virtual ~Schedule() = default;
  // After `k` intervals (epochs or steps) are done; base: the optimizer's lr. k counts up from 0.
  virtual double lr(int64_t k) = 0;
  // What one_cycle sets besides the learning rate: momentum or beta1. Empty: the optimizer's own.
  virtual std::optional<double> momentum(int64_t) { return {}; }
  // For reduce_on_plateau: the test loss of each evaluation, or, where the spec evaluates nothing,
  // the loss of each epoch. It counts for the next lr().
  virtual void metric(double) {}
  // What it has kept of these losses, for one that goes on with it; empty: nothing. restore() takes
  // no notice of what another sort of schedule has kept, and gives what the user should know of it;
  // empty: nothing.
  virtual std::vector<double> state() const { return {}; }
  virtual std::string restore(std::span<const double>) { return ""; }
};

struct ScheduleType : Nameable {
  // total: how many intervals the run will have.
  std::unique_ptr<Schedule> (*make)(const std::any& settings, double base_lr, int64_t total);
  std::string_view interval = "epoch";  // what k counts where the spec does not say: epoch | step
  std::string (*torch)(const std::any& settings,
                       int64_t total);  // "lr_scheduler.StepLR(optimizer, step_size=30)"
  bool needs_metric = false;            // torch's step() takes one; it comes once an epoch
  bool own_rate = false;                // starts from a rate of its own, not the optimizer's
};

std::span<const ScheduleType> schedule_table();  // generated from optim/meson.build
std::vector<const Nameable*> schedule_words();

// The schedule of a spec, with its warm-up in front; a constant one where none is named. total: how
// many intervals the run will have, warm-up and all.
std::unique_ptr<Schedule> make_schedule(const ScheduleSpec& spec, double base_lr, int64_t total);

// What k counts in this spec: "epoch" or "step".
std::string_view schedule_interval(const ScheduleSpec& spec);

// The same as an expression of PyTorch; empty where nothing is named and the rate stays as it is.
// A schedule that needs a metric stands alone: its warm-up is torch_warmup(), stepped before it.
std::string torch_schedule(const ScheduleSpec& spec, int64_t total);
std::string torch_warmup(const ScheduleSpec& spec);

// What the tables of keys cannot see: one_cycle needs an optimizer with momentum or beta1,
// reduce_on_plateau counts epochs.
void check_schedule(const Spec& spec, Diagnostics& d);

}  // namespace dpt
