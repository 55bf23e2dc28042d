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

// Element i of a weight that is broadcast over the leading dimensions; 1 if there is no weight.
inline double weight_at(const TensorView* w, size_t i) {
  if (w == nullptr) return 1;
  const size_t n = static_cast<size_t>(w->desc.shape.elements());
  return w->desc.dtype == DType::f64 ? w->as<const double>()[i % n]
                                     : static_cast<double>(w->as<const float>()[i % n]);
}

inline const TensorView* input_or_none(const KernelArgs& args, size_t i) {
  return i < args.in.size() ? &args.in[i] : nullptr;
}

}  // namespace dpt::operators
