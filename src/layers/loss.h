// The registry of `loss:`. Each file in layers/losses/ holds one LossType, but
// pointwise_losses.cpp, which holds those of a table.
//
// Note [divisor]: a loss node returns this shard's sum of terms, divided by a divisor that is equal
// for all shards of the global batch. So the sum over shards is the mean in every mode, even if
// shards differ in size, and nothing else divides.
#pragma once

#include <any>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/builder.h"
#include "graph/formulas/loss.h"
#include "spec/registry_entry.h"

namespace dpt {

// What a loss divides by, for a global batch of N samples. one: 1. samples: N. places: N times the
// number of positions of a sample that have C scores each, which is 1 for an output [N, C].
// elements: N times the elements of a sample. half_elements: half of that, for outputs that hold
// two numbers for each target. targets: the sum of target_weight.
enum class Divisor { one, samples, positions, elements, half_elements, targets };

using formula::OutputKind;

struct LossType : RegistryEntry {
  // divisor: f32[1]. Returns f64[1]: this shard's sum of terms / divisor.
  ValueId (*build)(const std::any& settings, GraphBuilder& g, ValueId output, ValueId target,
                   ValueId divisor);
  Divisor (*divisor)(const std::any& settings);
  // Divisor::targets only: f64[1], the sum of the weights of this shard's targets.
  ValueId (*target_weight)(const std::any& settings, GraphBuilder& g, ValueId target);
  // Targets of this class are ignored. Null: none is.
  int64_t (*ignore_index)(const std::any& settings) = nullptr;
  bool classes = false;  // targets are class indices i32[N, ...], so accuracy can be computed
  // If targets are made of class indices: the dimension of an output [N, ...] that holds the scores
  // of the classes.
  int (*class_dim)(const std::any& settings, const Shape& output) = nullptr;
  // The outputs estimate the targets, which are numbers, so mae, rmse, r2 and the like can be
  // computed.
  bool estimates = false;
  OutputKind outputs = OutputKind::values;
  bool signs = false;  // labels are -1 and 1, not 0 and 1
  // Whether the loss is the mean negative log-likelihood of the target classes, whose exponential
  // is the perplexity. Null: it is not.
  bool (*mean_likelihood)(const std::any& settings) = nullptr;
  // Checks the targets of a sample, which are either values or labels. Returns the end of a message
  // that begins with "sample 3": "has the target 2, but ...". Empty: they are right. Null: all
  // targets are accepted.
  std::string (*target_problem)(const std::any& settings, std::span<const float> values,
                                std::span<const int32_t> labels) = nullptr;
  // Checks the labels of a sample against the model's output for it: [T, C] of an output [N, T, C].
  // Returns the end of a message, as target_problem. Null: all fit.
  std::string (*output_problem)(const std::any& settings, std::span<const int32_t> labels,
                                const Shape& output) = nullptr;
  // Outputs [T, C] are scores of C labels at each time, of which this one is the blank (ctc_loss).
  // Null: they are not.
  int64_t (*blank)(const std::any& settings) = nullptr;
  // The first half of the outputs are means, the second half stand for variances: returns the
  // variance that the loss makes of an output. Null: outputs are no means and variances.
  double (*variance)(const std::any& settings, double output) = nullptr;
  // For targets that are numbers: the target that an output estimates. Null: the output, or what
  // `outputs` makes of it.
  double (*estimate)(const std::any& settings, double output) = nullptr;
  // What the loss requires of the model's outputs, and a remedy. Shown if the loss is not finite
  // though the outputs are. Empty: no requirement.
  std::string_view needs{};
  // The loss as a Python expression for PyTorch: "nn.CrossEntropyLoss(label_smoothing=0.1)".
  std::string (*torch)(const std::any& settings);
  // Python source of the class that the expression uses, if PyTorch has no such module; else empty.
  std::string_view torch_class{};
};

// Whether targets are labels that are 0 or 1, for each of which the outputs have a probability.
inline bool has_labels(const LossType& loss) {
  return loss.outputs == OutputKind::logits || loss.outputs == OutputKind::probabilities;
}
// Whether these are 0 and 1, for which a file may have words: True and False.
inline bool has_binary_labels(const LossType& loss) { return has_labels(loss) && !loss.signs; }

std::span<const LossType> loss_table();  // generated from layers/losses/meson.build
std::vector<const RegistryEntry*> loss_registry();

}  // namespace dpt
