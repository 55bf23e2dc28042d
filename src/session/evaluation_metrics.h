// The metrics of an evaluation that need the model's outputs, and how they are summed. Each shard
// has a list of doubles. Its first ones are sums: counts are whole numbers below 2^53, so their
// order does not matter; other sums are added in the fixed tree (comm/tree.h). The others are kept
// for metrics that need all outputs at once. All modes thus get the same bits.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/tensor.h"
#include "session/label_metrics.h"
#include "spec/spec.h"

namespace dpt {

struct CompiledModel;
struct RunSettings;
struct SessionBatches;
struct SessionData;

// A metric by the name that users write.
struct NamedValue {
  std::string name;
  double value = 0;
};

class EvaluationMetrics {
 public:
  struct Settings {
    std::vector<std::string> names;  // in the order in which they are reported
    // Of a loss over classes: their number, the dimension of their scores in an output [N, ...],
    // and the target that does not count. Else 0.
    int64_t classes = 0;
    int class_dim = 1;
    int64_t ignore_index = -100;
    // Of other losses: the first target of the set, [elements of a sample]. Sums of squares are
    // taken around it, so that they do not cancel.
    std::vector<float> origin;
    // Units of the data in one unit of the targets, [elements of a sample], in which errors are
    // given. Empty: 1 for each.
    std::vector<double> units;
    // The data's own value where a target is 0, likewise. Empty: 0 for each.
    std::vector<double> zeros;
    // Of losses whose targets are 0 or 1: their labels. Of losses over classes, if `auc` is wanted:
    // the scores that are kept, one a target for two classes (that of class 1), else one for each
    // class against the others. Else no labels.
    LabelMetrics::Settings labels;
    // Of the classes or labels; empty: they have numbers.
    std::vector<std::string> label_names;
  };
  EvaluationMetrics() = default;  // none
  explicit EvaluationMetrics(Settings settings);

  const std::vector<std::string>& names() const { return settings_.names; }
  bool has(std::string_view name) const;
  size_t size() const { return size_; }  // of a shard's numbers; 0: the outputs are not needed
  size_t summed() const;                 // how many of them are sums; the others are kept

  // Adds samples to a shard's numbers. output: f32 or half [N, ...], in any layout; target: classes
  // i32, or f32 of the output's shape. May allocate. Thread: any.
  void add(const TensorView& output, const TensorView& target, std::span<double> shard) const;

  using Shards = std::span<const std::span<const double>>;
  // The values of all names but `loss`, `confusion_matrix` and the accuracy of classes. sums: of
  // all shards. loss: the mean loss. shards: the numbers of each shard, for what is not summed;
  // none: `sums` are those of the only one.
  std::vector<NamedValue> values(std::span<const double> sums, double loss,
                                 Shards shards = {}) const;
  // The values of each label for those of the names that are means over labels: "f1.cat". Empty for
  // classes, for a single label, and for more than kMostByLabel.
  std::vector<NamedValue> by_label(std::span<const double> sums, Shards shards = {}) const;
  static constexpr int64_t kMostByLabel = 100;
  // counts[actual * classes + predicted]; empty: not wanted.
  std::vector<int64_t> confusion_matrix(std::span<const double> sums) const;

 private:
  void add_classes(std::span<const float> output, const Shape& shape,
                   std::span<const int32_t> targets, std::span<double> sums) const;
  void add_class_scores(std::span<const float> output, const Shape& shape,
                        std::span<const int32_t> targets, std::span<double> shard) const;
  void add_numbers(std::span<const float> output, std::span<const float> targets,
                   std::span<double> sums) const;
  bool by_labels() const { return labels_.labels() > 0 && settings_.classes == 0; }
  LabelCounts counts_of(std::span<const double> sums, int64_t which) const;
  double mean_over_classes(std::string_view metric, std::span<const double> sums) const;
  double of_label(std::string_view metric, int64_t label, std::span<const double> sums,
                  Shards shards) const;
  double mean_over_labels(std::string_view metric, std::span<const double> sums,
                          Shards shards) const;
  double auc(int64_t label, std::span<const double> sums, Shards shards) const;
  double by_name(std::string_view name, std::span<const double> sums, Shards shards) const;
  double unit(size_t column) const { return settings_.units.empty() ? 1 : settings_.units[column]; }
  double error(std::string_view metric, std::span<const double> sums) const;
  double r2(std::span<const double> sums) const;

  Settings settings_;
  LabelMetrics labels_;        // of classes: only for auc
  std::vector<int64_t> tops_;  // each K of the metrics topK
  bool matrix_ = false, by_class_ = false, numbers_ = false;
  // Where the sums of each kind begin. The first one counts targets, or samples.
  size_t of_tops_ = 1, of_classes_ = 1, of_columns_ = 1, of_labels_ = 0, size_ = 0;
};

// What the session's evaluations compute: `evaluate.metrics` and what `save.best` and `early_stop`
// need. Reports metrics that do not fit the loss.
EvaluationMetrics metrics_of(const RunSettings& settings, const SessionData& data,
                             const SessionBatches& batches, const CompiledModel& model,
                             Diagnostics& d);

// The metric by which the best weights are kept; empty: they are not.
std::string metric_of_best(const Spec& spec, const SessionData& data);
// The metric that early stopping looks at; empty: the run is not stopped early.
std::string metric_of_early_stop(const Spec& spec);

}  // namespace dpt
