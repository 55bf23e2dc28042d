#include "report/run_time.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/status_line.h"

namespace dpt {
namespace {

constexpr double kMuch = 0.2;  // a share of the time that is worth a sentence

// From its start to its last record; 0: unknown, as where the run was resumed.
double wall_s(const ReportedRun& run) {
  const auto& times = run.curves.times();
  const auto& environment = run.summary.environment;
  if (!environment || times.empty() || !environment->text("resume").empty()) return 0;
  return std::max(0.0, times.back().time - environment->number("started").value_or(1e300));
}

// A sentence about an epoch that took much longer than the others.
std::string slow_epoch(const RunCurves& curves) {
  constexpr double kLonger = 1.5;
  constexpr size_t kFewest = 4;
  const Curve* seconds = curves.find("seconds");
  if (!seconds || seconds->every > 1 || seconds->points.size() < kFewest) return "";
  std::vector<double> sorted;
  for (const CurvePoint& p : seconds->points) sorted.push_back(p.value);
  std::ranges::sort(sorted);
  const double median = sorted[sorted.size() / 2];
  const auto longest = std::ranges::max_element(seconds->points, {}, &CurvePoint::value);
  // Epochs of a few milliseconds vary by what else the machine does.
  if (!(longest->value > kLonger * median) || longest->value - median < 0.1) return "";
  return fmt::format(
      "Epoch {} took {}, {:.1f} times the median of {}: other programs may have used "
      "the machine, or the first epoch filled caches.",
      longest - seconds->points.begin() + 1, duration_text(longest->value), longest->value / median,
      duration_text(median));
}

}  // namespace

std::string duration_text(double seconds) {
  constexpr double kLong = 100;
  return seconds < kLong ? fmt::format("{:.3g} s", seconds) : clock_duration(seconds);
}

double RunTime::total() const {
  double out = 0;
  for (const TimePart& p : parts) out += p.seconds;
  return out;
}

RunTime time_of(const ReportedRun& run) {
  const RunCurves& c = run.curves;
  RunTime out;
  if (c.epochs() == 0 || c.trained_s() <= 0) return out;
  const double waited = c.trained_s() * c.data_wait().value_or(0);
  const double rest = wall_s(run) - c.trained_s() - c.evaluated_s();
  out.parts = {{"training steps", c.trained_s() - waited},
               {"waiting for data", waited},
               {"evaluation", c.evaluated_s()},
               {"start, checkpoints and the rest", std::max(0.0, rest)}};
  std::erase_if(out.parts, [](const TimePart& p) { return p.seconds <= 0; });
  const double total = out.total();
  const auto share = [&](double seconds) { return fmt::format("{:.0f} %", 100 * seconds / total); };
  if (const auto rate = run.summary.numbers.find("samples_per_second"))
    out.reasons.push_back(fmt::format(
        "{} of training: {} on average, {} for an epoch.", duration_text(c.trained_s()),
        samples_per_second(*rate), duration_text(c.trained_s() / static_cast<double>(c.epochs()))));
  if (c.evaluated_s() > kMuch * total)
    out.reasons.push_back(
        fmt::format("Evaluations take {} of the time: `evaluate: {{every: N}}` evaluates less "
                    "often, and a larger `evaluate.batch_size` may be faster.",
                    share(c.evaluated_s())));
  if (waited > kMuch * total)
    out.reasons.push_back(fmt::format(
        "Steps wait for data in {} of the time: fewer or cheaper transforms, smaller files or more "
        "cores help.",
        share(waited)));
  if (rest > kMuch * total && rest > 1)
    out.reasons.push_back(
        fmt::format("{} went to neither training nor evaluation but to startup, reading the data, "
                    "and checkpoints; `save.every_minutes` makes checkpoints rarer.",
                    share(rest)));
  if (std::string slow = slow_epoch(c); !slow.empty()) out.reasons.push_back(std::move(slow));
  return out;
}

}  // namespace dpt
