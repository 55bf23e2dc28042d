// soft_margin_loss: log(1 + exp(-target * output)) for each element; targets are -1 or 1.
#include "graph/formulas/loss.h"
#include "graph/operators/losses/loss_support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any&) {
  need_pointwise("soft_margin_loss", in);
  return one_double();
}

std::vector<TensorDesc> infer_gradient(std::span<const TensorDesc> in, const std::any&) {
  need_pointwise("soft_margin_loss", in);
  return {in[0]};
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  return loss_gradient(g, n, "soft_margin_loss_gradient", dy);
}

void forward(const KernelArgs& args, const std::any&) {
  sum_terms(args, [](double x, double t, size_t) { return formula::soft_margin(x, t); });
}

void backward(const KernelArgs& args, const std::any&) {
  map_slopes(args, [](double x, double t, size_t) { return formula::soft_margin_slope(x, t); });
}

std::vector<Sample> samples_of(std::string_view op, bool gradient) {
  return pointwise_samples(op, gradient, {}, {-4, 4}, {-1, 1});
}

}  // namespace

OperatorType soft_margin_loss() {
  return {.name = "soft_margin_loss",
          .precision = Precision::full,
          .infer = infer,
          .gradient = gradient,
          .reference = forward,
          .samples = [] { return samples_of("soft_margin_loss", false); },
          .flops = elements_of_first_input};
}

OperatorType soft_margin_loss_gradient() {
  return {.name = "soft_margin_loss_gradient",
          .precision = Precision::full,
          .infer = infer_gradient,
          .reference = backward,
          .samples = [] { return samples_of("soft_margin_loss_gradient", true); },
          .backward = true};
}

}  // namespace dpt::operators
