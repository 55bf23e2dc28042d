// Metrics of classes and labels from counts, and the area under the ROC curve. A label is one of
// the numbers of a target that are 0 or 1, as bce_with_logits_loss takes them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/tensor.h"

namespace dpt {

// Counts of one class or label. Whole numbers below 2^53, so their order does not matter.
struct LabelCounts {
  double all = 0;        // targets
  double actual = 0;     // that have the label
  double predicted = 0;  // for which it is predicted
  double right = 0;      // for which it is predicted, and which have it
  // accuracy, precision, recall or f1. As in scikit-learn, a share of nothing is 0.
  double value(std::string_view metric) const;
};

// Whether LabelCounts::value() knows the metric.
bool is_count_metric(std::string_view metric);

// Sums over the labels of outputs [N, labels, ...]; an output [N] has one label. With `scores`,
// each shard also keeps all its outputs: the area under the ROC curve depends on the order of all
// of them, but not on which shard has which, so all modes get the same bits.
class LabelMetrics {
 public:
  struct Settings {
    int64_t labels = 0;
    float threshold = 0;  // outputs above it predict the label
    // Positions of one shard in an evaluation, at most, if it keeps scores: samples times the
    // elements of a label. 0: it keeps none.
    int64_t positions = 0;
  };
  LabelMetrics() = default;
  explicit LabelMetrics(const Settings& settings);

  int64_t labels() const { return settings_.labels; }
  // Of a shard: numbers that are summed over the shards, and after them those that are kept.
  size_t summed() const;
  size_t size() const;

  // Adds samples to a shard's numbers. Targets above 0.5 have the label. Thread: any.
  void add(std::span<const float> output, const Shape& shape, std::span<const float> targets,
           std::span<double> shard) const;

  LabelCounts counts(std::span<const double> sums, int64_t label) const;
  // scikit-learn's roc_auc_score, whose scores of equal value count half. shards: the numbers of
  // each. NaN: all targets have the label, or none has it, or an output is NaN.
  double auc(std::span<const std::span<const double>> shards, int64_t label) const;

 private:
  size_t of(int64_t label) const { return 1 + 3 * static_cast<size_t>(label); }

  Settings settings_;
};

}  // namespace dpt
