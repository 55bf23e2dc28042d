#include "report/sweep_run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace dpt {
namespace {

constexpr std::array kStates = {
    std::pair(SweepState::waiting, std::string_view("waiting")),
    std::pair(SweepState::running, std::string_view("running")),
    std::pair(SweepState::stopped, std::string_view("stopped")),
    std::pair(SweepState::paused, std::string_view("paused")),
    std::pair(SweepState::finished, std::string_view("finished")),
    std::pair(SweepState::reached, std::string_view("reached")),
    std::pair(SweepState::dropped, std::string_view("dropped")),
    std::pair(SweepState::failed, std::string_view("failed")),
};

}  // namespace

std::string_view name_of(SweepState state) {
  return std::ranges::find(kStates, state, &std::pair<SweepState, std::string_view>::first)->second;
}

std::optional<SweepState> sweep_state_named(std::string_view name) {
  const auto found =
      std::ranges::find(kStates, name, &std::pair<SweepState, std::string_view>::second);
  return found == kStates.end() ? std::nullopt : std::optional(found->first);
}

size_t Sweep::settings() const { return runs.empty() ? 0 : runs.back().point.setting + 1; }

std::vector<const SweepRun*> Sweep::of_setting(size_t setting) const {
  std::vector<const SweepRun*> out;
  for (const SweepRun& r : runs)
    if (r.point.setting == setting) out.push_back(&r);
  return out;
}

const NumbersRecord* Sweep::reached(const SweepRun& run) const {
  return target ? run.numbers.reached(target->metric, target->value) : nullptr;
}

bool Sweep::is_decided() const {
  return target && target->ends_sweep &&
         std::ranges::any_of(runs, [&](const SweepRun& r) { return reached(r) != nullptr; });
}

SeedMean mean_of(const std::vector<double>& values) {
  SeedMean out{.count = static_cast<int>(values.size())};
  if (values.empty()) return out;
  out.mean = std::accumulate(values.begin(), values.end(), 0.0) / out.count;
  double squares = 0;
  for (const double v : values) squares += (v - out.mean) * (v - out.mean);
  if (out.count > 1) out.deviation = std::sqrt(squares / (out.count - 1));
  return out;
}

}  // namespace dpt
