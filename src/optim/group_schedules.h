// The schedules of a run: one for each base learning rate, since parameter groups may have their
// own. As in PyTorch, where a scheduler computes each group's rate from that group's initial one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "optim/schedule.h"

namespace dpt {

// Not thread-safe.
class GroupSchedules {
 public:
  // base_rates: at least one; the first is the optimizer's own. total: see make_schedule().
  GroupSchedules(const ScheduleSpec& spec, std::span<const double> base_rates, int64_t total);

  // The learning rate after `k` intervals for base_rates[rate]. Call it with ascending k.
  double lr(int64_t k, size_t rate = 0) { return schedules_[rate]->lr(k); }
  // The rest is as in Schedule.
  std::optional<double> momentum(int64_t k) { return schedules_[0]->momentum(k); }
  void metric(double value);
  // The states of all schedules, one after another.
  std::vector<double> state() const;
  // If the number of base rates has changed, further schedules continue like the last one saved.
  // Returns messages for the user.
  std::vector<std::string> restore(std::span<const double> state);

 private:
  std::vector<std::unique_ptr<Schedule>> schedules_;
};

}  // namespace dpt
