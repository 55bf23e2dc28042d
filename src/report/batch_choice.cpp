#include "report/batch_choice.h"

#include <algorithm>

namespace dpt {
namespace {

constexpr double kNear = 0.9;  // of the fastest: a tenth less speed is no reason for a larger batch

}  // namespace

std::vector<int64_t> batch_candidates(const BatchLimits& limits) {
  constexpr int64_t kSmallest = 16, kSteps = 16, kMost = int64_t{1} << 20;
  const int64_t most = std::min(kMost, limits.samples / kSteps);
  const int64_t first = (kSmallest + limits.unit - 1) / limits.unit * limits.unit;
  std::vector<int64_t> out;
  for (int64_t batch = first; batch <= most; batch *= 2) out.push_back(batch);
  if (out.empty())
    out.push_back(
        std::max(limits.unit, std::min(first, limits.samples / limits.unit * limits.unit)));
  return out;
}

std::vector<BatchTrial> measure_batches(const std::vector<int64_t>& candidates, bool largest,
                                        const std::function<BatchTrial(int64_t)>& measure,
                                        double seconds, const std::function<double()>& now) {
  constexpr int kNoGain = 2;
  std::vector<BatchTrial> out;
  const double begin = now();
  double fastest = 0;
  int no_gain = 0;
  for (const int64_t batch : candidates) {
    const bool any = fastest > 0;
    if (!out.empty() && (now() - begin >= seconds || (any && no_gain == kNoGain))) break;
    out.push_back(measure(batch));
    const bool ran = out.back().refused.empty();
    const double speed = ran ? out.back().samples_per_second : 0;
    const bool gains = ran && (largest || speed * kNear > fastest);
    no_gain = gains ? 0 : no_gain + 1;
    fastest = std::max(fastest, speed);
  }
  return out;
}

std::optional<BatchTrial> choose_batch(const std::vector<BatchTrial>& trials, bool largest) {
  std::optional<BatchTrial> out;
  double fastest = 0;
  for (const BatchTrial& t : trials) fastest = std::max(fastest, t.samples_per_second);
  for (const BatchTrial& t : trials) {
    const bool fits = t.refused.empty() && (largest || t.samples_per_second >= kNear * fastest);
    if (fits && (largest || !out)) out = t;
  }
  return out;
}

}  // namespace dpt
