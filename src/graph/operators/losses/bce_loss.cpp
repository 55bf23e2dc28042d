// bce_loss: -w (target log output + (1 - target) log(1 - output)), with logarithms clamped to -100.
// An optional fourth input holds weights w, broadcast over the leading dimensions.
#include "graph/formulas/loss.h"
#include "graph/operators/losses/loss_support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any&) {
  need_pointwise("bce_loss", in);
  return one_double();
}

std::vector<TensorDesc> infer_gradient(std::span<const TensorDesc> in, const std::any&) {
  need_pointwise("bce_loss", in);
  return {in[0]};
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  return loss_gradient(g, n, "bce_loss_gradient", dy);
}

void forward(const KernelArgs& args, const std::any&) {
  const TensorView* w = input_or_none(args, 3);
  sum_terms(args,
            [&](double x, double t, size_t i) { return weight_at(w, i) * formula::bce(x, t); });
}

void backward(const KernelArgs& args, const std::any&) {
  const TensorView* w = input_or_none(args, 3);
  map_slopes(args, [&](double x, double t, size_t i) {
    return weight_at(w, i) * formula::bce_slope(x, t);
  });
}

std::vector<Sample> samples_of(std::string_view op, bool gradient) {
  return both(pointwise_samples(op, gradient, {}, {0.1, 0.9}, {0, 1}),
              pointwise_samples(op, gradient, {}, {0.1, 0.9}, {0, 1}, 1));
}

}  // namespace

OperatorType bce_loss() {
  return {
      .name = "bce_loss",
      .precision = Precision::full,
      .infer = infer,
      .gradient = gradient,
      .reference = forward,
      .samples = [] { return samples_of("bce_loss", false); },
      .flops = elements_of_first_input,
      .autocast_refuses =
          "its logarithm needs more precision than bf16 or fp16 has. Remove the last sigmoid and "
          "use bce_with_logits_loss"};
}

OperatorType bce_loss_gradient() {
  return {.name = "bce_loss_gradient",
          .precision = Precision::full,
          .infer = infer_gradient,
          .reference = backward,
          .samples = [] { return samples_of("bce_loss_gradient", true); },
          .backward = true};
}

}  // namespace dpt::operators
