#include "session/label_metrics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/fail.h"

namespace dpt {
namespace {

constexpr float kHasLabel = 0.5F;  // targets above it do
constexpr double kNoScore = -1;    // stands for an output that is NaN

// Score and target as a whole number, which a double holds exactly: greater scores have greater
// numbers, equal ones numbers that differ in the last bit only, which is the target.
double key_of(float score, bool has_label) {
  if (std::isnan(score)) return kNoScore;
  constexpr uint32_t kSign = 0x80000000U;
  const auto bits = std::bit_cast<uint32_t>(score + 0.0F);  // -0 and 0 are equal
  const uint32_t ordered = (bits & kSign) != 0 ? ~bits : bits | kSign;
  return static_cast<double>(2 * uint64_t{ordered} + (has_label ? 1 : 0));
}

double share(double of, double all) { return all > 0 ? of / all : 0; }

}  // namespace

double LabelCounts::value(std::string_view metric) const {
  if (metric == "accuracy") return share(all - actual - predicted + 2 * right, all);
  if (metric == "precision") return share(right, predicted);
  if (metric == "recall") return share(right, actual);
  require(metric == "f1", "a metric of counts");
  return share(2 * right, actual + predicted);
}

bool is_count_metric(std::string_view metric) {
  return metric == "accuracy" || metric == "precision" || metric == "recall" || metric == "f1";
}

LabelMetrics::LabelMetrics(const Settings& settings) : settings_(settings) {}

size_t LabelMetrics::summed() const { return settings_.labels > 0 ? of(settings_.labels) : 0; }

size_t LabelMetrics::size() const {
  return summed() + static_cast<size_t>(settings_.positions * settings_.labels);
}

void LabelMetrics::add(std::span<const float> output, const Shape& shape,
                       std::span<const float> targets, std::span<double> shard) const {
  const auto labels = static_cast<size_t>(settings_.labels);
  const auto inner = static_cast<size_t>(shape.rank() > 2 ? shape.tail(2).elements() : 1);
  const size_t positions = output.size() / labels;
  const auto before = static_cast<size_t>(shard[0]);
  const bool keeps = settings_.positions > 0;
  require(!keeps || before + positions <= static_cast<size_t>(settings_.positions),
          "a shard has room for its scores");
  for (size_t p = 0; p < positions; ++p)
    for (size_t l = 0; l < labels; ++l) {
      const size_t at = p / inner * labels * inner + l * inner + p % inner;
      const bool actual = targets[at] > kHasLabel, predicted = output[at] > settings_.threshold;
      double* const counts = &shard[of(static_cast<int64_t>(l))];
      counts[0] += actual ? 1 : 0;
      counts[1] += predicted ? 1 : 0;
      counts[2] += actual && predicted ? 1 : 0;
      if (keeps) shard[summed() + (before + p) * labels + l] = key_of(output[at], actual);
    }
  shard[0] += static_cast<double>(positions);
}

LabelCounts LabelMetrics::counts(std::span<const double> sums, int64_t label) const {
  const std::span<const double> own = sums.subspan(of(label), 3);
  return {.all = sums[0], .actual = own[0], .predicted = own[1], .right = own[2]};
}

// Of all pairs of a target with the label and one without it, the share in which the first has the
// greater score, and half of those in which both are equal. All counts are exact.
double LabelMetrics::auc(std::span<const std::span<const double>> shards, int64_t label) const {
  const auto labels = static_cast<size_t>(settings_.labels);
  std::vector<uint64_t> keys;
  for (const std::span<const double> shard : shards)
    for (size_t p = 0; p < static_cast<size_t>(shard[0]); ++p) {
      const double key = shard[summed() + p * labels + static_cast<size_t>(label)];
      if (key == kNoScore) return std::numeric_limits<double>::quiet_NaN();
      keys.push_back(static_cast<uint64_t>(key));
    }
  std::ranges::sort(keys);
  uint64_t with = 0, without = 0, twice = 0;  // twice: two for each pair that is in order
  for (size_t i = 0; i < keys.size();) {
    uint64_t equal_with = 0, equal_without = 0;
    for (const uint64_t score = keys[i] / 2; i < keys.size() && keys[i] / 2 == score; ++i)
      ++(keys[i] % 2 == 1 ? equal_with : equal_without);
    twice += equal_with * (2 * without + equal_without);
    with += equal_with;
    without += equal_without;
  }
  if (with == 0 || without == 0) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(twice) /
         (2 * static_cast<double>(with) * static_cast<double>(without));
}

}  // namespace dpt
