// Helpers for losses. Inputs: output, target, divisor [1], and constants with weights. The result
// is f64[1]: this shard's sum of terms divided by the divisor (layers/loss.h, Note [divisor]). A
// gradient operator takes the same inputs and returns d loss / d output; since the loss is the last
// node, there is no dy.
#pragma once

#include "graph/operators/support.h"

namespace dpt::operators {

// The result of a loss, which is summed over shards.
inline std::vector<TensorDesc> one_double() { return {{DType::f64, {1}}}; }

// The operator `name` and its gradient, NAME_gradient. kCheck(inputs, [attributes]) throws if the
// inputs do not fit each other.
template <auto kCheck, auto kForward, auto kBackward>
Operators loss_types(std::string_view name, std::string_view gradient) {
  return {{.name = name,
           .precision = Precision::full,
           .infer = [](std::span<const TensorDesc> in,
                       const std::any& attrs) -> std::vector<TensorDesc> {
             typed<kCheck>(in, attrs);
             return one_double();
           },
           .gradient =
               [](GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
                 require(dy[0] == kNoValue, "a loss is the last node: nothing can stand behind it");
                 std::vector<ValueId> out(n.in.size(), kNoValue);
                 out[0] = g.apply(fmt::format("{}_gradient", n.op->name), n.in, n.attrs);
                 return out;
               },
           .reference = typed<kForward>,
           .flops = elements_of_first_input},
          {.name = gradient,
           .precision = Precision::full,
           .infer = [](std::span<const TensorDesc> in,
                       const std::any& attrs) -> std::vector<TensorDesc> {
             typed<kCheck>(in, attrs);
             return {in[0]};
           },
           .reference = typed<kBackward>,
           .traits = Trait::backward}};
}

inline void need_divisor(const TensorDesc& output, const TensorDesc& divisor) {
  require(divisor.shape == Shape{1} && divisor.dtype == output.dtype, "a loss takes a divisor [1]");
}

// Weights that are broadcast over the leading dimensions: those of an input, or 1 if `input` is 0
// or there are fewer inputs.
class Weights {
 public:
  Weights(const KernelArgs& args, size_t input) {
    if (input == 0 || input >= args.in.size()) return;
    if (args.in[input].desc.dtype == DType::f64)
      doubles_ = args.in[input].as<const double>();
    else
      floats_ = args.in[input].as<const float>();
  }
  double operator[](size_t i) const {
    if (!floats_.empty()) return static_cast<double>(floats_[i % floats_.size()]);
    return doubles_.empty() ? 1 : doubles_[i % doubles_.size()];
  }

 private:
  std::span<const double> doubles_;
  std::span<const float> floats_;
};

}  // namespace dpt::operators
