#include "optim/group_schedules.h"

#include <algorithm>

namespace dpt {

GroupSchedules::GroupSchedules(const ScheduleSpec& spec, std::span<const double> base_rates,
                               int64_t total) {
  for (const double base : base_rates) schedules_.push_back(make_schedule(spec, base, total));
}

void GroupSchedules::metric(double value) {
  for (const auto& schedule : schedules_) schedule->metric(value);
}

std::vector<double> GroupSchedules::state() const {
  std::vector<double> out;
  for (const auto& schedule : schedules_) {
    const std::vector<double> more = schedule->state();
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

std::vector<std::string> GroupSchedules::restore(std::span<const double> state) {
  // All schedules are of one kind, so their states have one size. Another size was written by an
  // older version, which had one schedule, or by another kind of schedule, which ignores it.
  size_t size = schedules_[0]->state().size();
  if (size == 0 || state.empty() || state.size() % size != 0) size = state.size();
  const size_t saved = size == 0 ? 1 : state.size() / size;
  std::vector<std::string> notes;
  for (size_t i = 0; i < schedules_.size(); ++i) {
    const size_t from = std::min(i, saved - 1) * size;
    const std::string note = schedules_[i]->restore(state.subspan(from, size));
    if (!note.empty()) notes.push_back(note);
  }
  return notes;
}

}  // namespace dpt
