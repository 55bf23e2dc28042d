#include "report/rounds.h"

#include <algorithm>
#include <cmath>

#include "base/median.h"

namespace dpt {
namespace {

int64_t whole(int64_t n, int64_t together) { return (n + together - 1) / together * together; }

// About n timed steps after a quarter as many of warm-up, both rounded up to multiples of
// `together`.
PlanStepClock::Steps timed_steps(int64_t n, int64_t together) {
  const int64_t warm_up = whole(1 + n / 4, together);
  return {warm_up, warm_up + whole(together > 1 ? std::max(n, 2 * together) : n, together)};
}

// Estimates a row's step time from two timed steps; if steps are short, from about 0.1 s of steps.
double seconds_per_step(const BenchRow& row, const Measure& measure, RowResult& out) {
  constexpr double kEnough = 0.02;  // seconds; many times what waking a worker takes
  RunSteps steps{.timed = {1, 3}, .marked = {1, 3}};
  for (;;) {
    const Reading r = measure(row, steps);
    out.facts = r.facts;
    out.data = r.data;
    const auto count = static_cast<double>(steps.timed.count());
    const int64_t together = r.facts.together;
    // No timed step completes together with a warm-up step.
    const bool apart = steps.timed.begin % together == 0;
    if (apart && (r.seconds >= kEnough || count >= 1e5)) return std::max(r.seconds, 1e-9) / count;
    const double more = std::min(100.0, 5 * kEnough / std::max(r.seconds, 1e-6));
    const auto n = static_cast<int64_t>(std::ceil(apart ? count * more : 1));
    steps.timed = timed_steps(n, together);
    steps.marked = {steps.timed.begin, steps.timed.begin + 1};
  }
}

RowResult summary(RowResult out, const std::vector<Reading>& readings) {
  std::vector<double> ms;
  for (const Reading& r : readings) {
    ms.push_back(1000 * r.seconds / static_cast<double>(r.samples));
    out.peak_bytes = std::max(out.peak_bytes, r.peak_bytes);
  }
  out.ms_per_sample = median(ms);
  out.fastest = std::ranges::min(ms);
  out.slowest = std::ranges::max(ms);
  out.rounds = static_cast<int>(readings.size());
  std::vector<double> sorted = ms;
  std::ranges::sort(sorted);
  const size_t outer = (sorted.size() - 1) / 4;  // rounds beyond a quartile
  out.lower = sorted[outer];
  out.upper = sorted[sorted.size() - 1 - outer];
  // The time of a disturbed round, which the median leaves out, would explain another median.
  for (size_t i = 0; i < ms.size(); ++i)
    if (ms[i] >= out.lower && ms[i] <= out.upper) out.spent += readings[i].spent;
  return out;
}

}  // namespace

RunSteps steps_for(double seconds_per_step, double seconds, int64_t together) {
  constexpr double kLong =
      1e-3;  // seconds; about ten clock reads of 30 ns each are negligible beside such a step
  const auto n = static_cast<int64_t>(std::clamp(seconds / seconds_per_step, 1.0, 1e8));
  const PlanStepClock::Steps timed = timed_steps(n, together);
  RunSteps out{.timed = timed, .marked = timed};
  if (seconds_per_step < kLong) out.marked = {timed.end, timed.end + whole(1 + n / 4, together)};
  return out;
}

std::vector<RowResult> take_turns(std::span<const BenchRow> rows, const BenchSettings& settings,
                                  const Measure& measure, const TurnsObserver& observer) {
  std::vector<RowResult> out(rows.size());
  std::vector<RunSteps> steps(rows.size());
  std::vector<std::vector<Reading>> readings(rows.size());
  const auto stops = [&] { return observer.stops && observer.stops(); };
  const auto run = [&](int round, size_t i) {
    if (observer.begins) observer.begins(round, rows[i]);
    if (round == 0) {
      const double seconds = seconds_per_step(rows[i], measure, out[i]);
      steps[i] = steps_for(seconds, settings.seconds, out[i].facts.together);
      return;
    }
    readings[i].push_back(measure(rows[i], steps[i]));
    if (observer.measured) observer.measured(round, rows[i], readings[i].back());
  };
  for (int round = 0; round <= settings.rounds && !stops(); ++round)
    for (size_t i = 0; i < rows.size() && !stops(); ++i) try {
        out[i].row = rows[i];
        if (out[i].refused.empty()) run(round, i);
      } catch (const Refused& e) {
        if (round > 0) throw;
        out[i].refused = e.what();
        out[i].refused_code = static_cast<int>(e.fault());
      } catch (const Error&) {  // Ctrl-C reaches the measured process too
        if (!stops()) throw;
      }
  for (size_t i = 0; i < rows.size(); ++i)
    if (!readings[i].empty()) out[i] = summary(std::move(out[i]), readings[i]);
  std::erase_if(out, [](const RowResult& r) { return r.refused.empty() && r.rounds == 0; });
  return out;
}

}  // namespace dpt
