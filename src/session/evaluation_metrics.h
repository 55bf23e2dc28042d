// The metrics of an evaluation that need the model's outputs, and how they are summed. Each shard
// has a list of doubles, its sums. Counts are whole numbers below 2^53, so their order does not
// matter; other sums are added in the fixed tree (comm/tree.h). All modes thus get the same bits.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/tensor.h"
#include "spec/spec.h"

namespace dpt {

struct CompiledModel;
struct RunSettings;
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
  };
  EvaluationMetrics() = default;  // none
  explicit EvaluationMetrics(Settings settings);

  const std::vector<std::string>& names() const { return settings_.names; }
  bool has(std::string_view name) const;
  size_t size() const { return size_; }  // of a shard's sums; 0: the outputs are not needed

  // Adds samples to a shard's sums. output: f32 or half [N, ...], in any layout; target: classes
  // i32, or f32 of the output's shape. May allocate. Thread: any.
  void add(const TensorView& output, const TensorView& target, std::span<double> sums) const;

  // The values of all names but `accuracy`, `loss` and `confusion_matrix`. sums: of all shards.
  // loss: the mean loss.
  std::vector<NamedValue> values(std::span<const double> sums, double loss) const;
  // counts[actual * classes + predicted]; empty: not wanted.
  std::vector<int64_t> confusion_matrix(std::span<const double> sums) const;

 private:
  void add_classes(std::span<const float> output, const Shape& shape,
                   std::span<const int32_t> targets, std::span<double> sums) const;
  void add_numbers(std::span<const float> output, std::span<const float> targets,
                   std::span<double> sums) const;
  double f1(std::span<const double> sums) const;
  double r2(std::span<const double> sums) const;

  Settings settings_;
  std::vector<int64_t> tops_;  // each K of the metrics topK
  bool matrix_ = false, by_class_ = false, numbers_ = false;
  // Where the sums of each kind begin. The first one counts targets, or samples.
  size_t of_tops_ = 1, of_classes_ = 1, of_columns_ = 1, size_ = 0;
};

// What the session's evaluations compute: `evaluate.metrics` and what `save.best` and `early_stop`
// need. Reports metrics that do not fit the loss.
EvaluationMetrics metrics_of(const RunSettings& settings, const SessionData& data,
                             const CompiledModel& model, Diagnostics& d);

// The metric by which the best weights are kept; empty: they are not.
std::string metric_of_best(const Spec& spec, const SessionData& data);
// The metric that early stopping looks at; empty: the run is not stopped early.
std::string metric_of_early_stop(const Spec& spec);

}  // namespace dpt
