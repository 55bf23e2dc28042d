// Helpers for losses: registration, reductions, and checks of targets.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/fail.h"
#include "formats/python_call.h"
#include "graph/attrs.h"
#include "layers/loss.h"

namespace dpt::losses {

// The name of a class: "Ctc" of the source "class Ctc(nn.CTCLoss): ...".
constexpr std::string_view class_of(std::string_view source) {
  const size_t begin = source.find(' ') + 1;
  return source.substr(begin, source.find('(') - begin);
}

// The call with a loss's keys, of which lists are tensors.
std::string torch_call(std::string_view callee, std::vector<PythonArgument> keys);

// REQUIRES: L has `static KeyTable<L> keys()`, `ValueId build(GraphBuilder&, ValueId output,
// ValueId target, ValueId divisor) const`, `Divisor divisor() const`. If targets are classes, L
// also has `int dim(const Shape& output) const`, the dimension of the classes; it may have `ValueId
// target_weight(GraphBuilder&, ValueId) const` with `int64_t ignore_index`, and `bool
// mean_likelihood() const`. Otherwise it may have `kEstimates`. Any may have `kOutputs`, `kSigns`
// and `kTorchClass`. See LossType.
template <class L>
LossType loss_type(std::string_view name, std::string_view summary) {
  LossType type{registry_entry<L>(name, summary)};
  type.build = [](const std::any& s, GraphBuilder& g, ValueId output, ValueId target,
                  ValueId divisor) {
    return std::any_cast<const L&>(s).build(g, output, target, divisor);
  };
  type.divisor = [](const std::any& s) { return std::any_cast<const L&>(s).divisor(); };
  if constexpr (requires { &L::target_weight; }) {
    type.target_weight = [](const std::any& s, GraphBuilder& g, ValueId target) {
      return std::any_cast<const L&>(s).target_weight(g, target);
    };
    type.ignore_index = [](const std::any& s) { return std::any_cast<const L&>(s).ignore_index; };
  }
  if constexpr (requires { &L::dim; }) {
    type.classes = true;
    type.class_dim = [](const std::any& s, const Shape& output) {
      return std::any_cast<const L&>(s).dim(output);
    };
  }
  if constexpr (requires { L::kEstimates; }) type.estimates = L::kEstimates;
  if constexpr (requires { L::kOutputs; }) type.outputs = L::kOutputs;
  if constexpr (requires(const L& l) { l.estimate(0.0); })
    type.estimate = [](const std::any& s, double output) {
      return std::any_cast<const L&>(s).estimate(output);
    };
  if constexpr (requires { L::kSigns; }) type.signs = L::kSigns;
  if constexpr (requires { &L::mean_likelihood; })
    type.mean_likelihood = [](const std::any& s) {
      return std::any_cast<const L&>(s).mean_likelihood();
    };
  if constexpr (requires { L::kTorchClass; }) type.torch_class = L::kTorchClass;
  type.torch = [](const std::any& s) {
    constexpr Usage kUsage = L::kUsage;
    std::string_view callee = kUsage.callee();
    if constexpr (requires { L::kTorchClass; })
      if (!L::kTorchClass.empty()) callee = class_of(L::kTorchClass);
    return torch_call(callee, L::keys().arguments(std::any_cast<const L&>(s)));
  };
  return type;
}

// Base class of all losses' settings.
struct Reduction {
  std::string reduction = "mean";

  static constexpr std::string_view kDoc =
      "how the losses of all elements are combined; none is not trainable";

  // PyTorch's 'none' is recognized in order to explain why it cannot be used.
  static void check(const Reduction& r, const Owner& owner, Diagnostics& d) {
    if (r.reduction == "none")
      d.error(owner.at("reduction"), "reduction 'none' cannot be trained: use 'mean' or 'sum'");
  }
  Divisor over(Divisor mean) const { return reduction == "sum" ? Divisor::one : mean; }
};

// Throws Error{spec} unless output and target are f32 of one shape; PyTorch would broadcast them.
void require_values(std::string_view loss, const GraphBuilder& g, ValueId output, ValueId target);

// A key of losses over classes: the dimension of the class scores.
struct ClassDim {
  int64_t class_dim = 1;

  static constexpr std::string_view kClassDim =
      "the dimension of the class scores: 1 as in PyTorch, or -1, the last one, as a linear layer "
      "outputs them for each position of a sequence";
  static constexpr Rule<int64_t> kOneOrLast{"must be 1 or -1",
                                            [](const int64_t& d) { return d == 1 || d == -1; }};
  int dim(const Shape& output) const { return class_dim < 0 ? output.rank() - 1 : 1; }
};

// Settings of losses over classes that have weights and may be ignored. If some target is -100,
// build_graph() divides by Divisor::targets.
struct ClassTargets : Reduction, ClassDim {
  static constexpr int64_t kNoClass = -100;

  std::vector<double> weight;
  int64_t ignore_index = kNoClass;

  Divisor divisor() const {
    return over(weight.empty() && ignore_index == kNoClass ? Divisor::positions : Divisor::targets);
  }
  ValueId target_weight(GraphBuilder& g, ValueId target) const;

 protected:
  // Adds the weights, if there are any, to the inputs of a loss whose first one is the output.
  void add_weight(std::string_view loss, GraphBuilder& g, const Shape& output,
                  std::vector<ValueId>& in) const;
};

// Throws Error{spec} unless the output is f32 [N, ...] with class scores along `dim`, and the
// target is i32 of its shape without `dim`.
void require_classes(std::string_view loss, const GraphBuilder& g, ValueId output, ValueId target,
                     int dim);

// Throws Error{spec} unless the target has the shape of the output: a probability for each class.
void require_probabilities(std::string_view loss, const GraphBuilder& g, ValueId output,
                           ValueId target);

// A constant with weights of classes, or of elements of the last dimension. Throws Error{spec}
// unless there are `extent` weights; `of` names what they belong to.
ValueId weight_constant(std::string_view loss, std::string_view key, GraphBuilder& g,
                        const std::vector<double>& weight, int64_t extent, std::string_view of);

}  // namespace dpt::losses
