// bce_with_logits_loss: bce_loss of sigmoid(output), without its overflows. After the divisor
// follow the constants that BceWithLogits names: weight, broadcast over the leading dimensions, and
// pos_weight.
#include "graph/formulas/loss.h"
#include "graph/operators/losses/loss_support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any&) {
  need_pointwise("bce_with_logits_loss", in);
  return one_double();
}

std::vector<TensorDesc> infer_gradient(std::span<const TensorDesc> in, const std::any&) {
  need_pointwise("bce_with_logits_loss", in);
  return {in[0]};
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  return loss_gradient(g, n, "bce_with_logits_loss_gradient", dy);
}

void forward(const KernelArgs& args, const std::any& attrs) {
  const auto& s = settings<BceWithLogits>(attrs);
  const TensorView* w = s.weight ? &args.in[3] : nullptr;
  const TensorView* p = s.pos_weight ? &args.in[s.weight ? 4 : 3] : nullptr;
  sum_terms(args, [&](double x, double t, size_t i) {
    return weight_at(w, i) * formula::bce_with_logits(x, t, weight_at(p, i));
  });
}

void backward(const KernelArgs& args, const std::any& attrs) {
  const auto& s = settings<BceWithLogits>(attrs);
  const TensorView* w = s.weight ? &args.in[3] : nullptr;
  const TensorView* p = s.pos_weight ? &args.in[s.weight ? 4 : 3] : nullptr;
  map_slopes(args, [&](double x, double t, size_t i) {
    return weight_at(w, i) * formula::bce_with_logits_slope(x, t, weight_at(p, i));
  });
}

std::vector<Sample> samples_of(std::string_view op, bool gradient) {
  return both(
      both(both(pointwise_samples(op, gradient, BceWithLogits{}, {-5, 5}, {0, 1}),
                pointwise_samples(op, gradient, BceWithLogits{.weight = true}, {-5, 5}, {0, 1}, 1)),
           pointwise_samples(op, gradient, BceWithLogits{.pos_weight = true}, {-5, 5}, {0, 1}, 1)),
      pointwise_samples(op, gradient, (BceWithLogits{.weight = true, .pos_weight = true}), {-5, 5},
                        {0, 1}, 2));
}

}  // namespace

OperatorType bce_with_logits_loss() {
  return {.name = "bce_with_logits_loss",
          .precision = Precision::full,
          .infer = infer,
          .gradient = gradient,
          .reference = forward,
          .samples = [] { return samples_of("bce_with_logits_loss", false); },
          .flops = elements_of_first_input};
}

OperatorType bce_with_logits_loss_gradient() {
  return {.name = "bce_with_logits_loss_gradient",
          .precision = Precision::full,
          .infer = infer_gradient,
          .reference = backward,
          .samples = [] { return samples_of("bce_with_logits_loss_gradient", true); },
          .backward = true};
}

}  // namespace dpt::operators
