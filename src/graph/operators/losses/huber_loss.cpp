// huber_loss: d^2 / 2 if |d| <= delta, else delta * (|d| - delta / 2), where d = output - target.
#include "graph/formulas/loss.h"
#include "graph/operators/losses/loss_support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any&) {
  need_pointwise("huber_loss", in);
  return one_double();
}

std::vector<TensorDesc> infer_gradient(std::span<const TensorDesc> in, const std::any&) {
  need_pointwise("huber_loss", in);
  return {in[0]};
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  return loss_gradient(g, n, "huber_loss_gradient", dy);
}

void forward(const KernelArgs& args, const std::any& attrs) {
  const auto& s = settings<Huber>(attrs);
  sum_terms(args, [&](double x, double t, size_t) { return formula::huber(x, t, s.delta); });
}

void backward(const KernelArgs& args, const std::any& attrs) {
  const auto& s = settings<Huber>(attrs);
  map_slopes(args, [&](double x, double t, size_t) { return formula::huber_slope(x, t, s.delta); });
}

std::vector<Sample> samples_of(std::string_view op, bool gradient) {
  return both(pointwise_samples(op, gradient, Huber{.delta = 0.5}, {1, 3}, {-2, 0}),
              pointwise_samples(op, gradient, Huber{.delta = 4}, {-1, 1}, {-1, 1}));
}

}  // namespace

OperatorType huber_loss() {
  return {.name = "huber_loss",
          .precision = Precision::full,
          .infer = infer,
          .gradient = gradient,
          .reference = forward,
          .samples = [] { return samples_of("huber_loss", false); },
          .flops = elements_of_first_input};
}

OperatorType huber_loss_gradient() {
  return {.name = "huber_loss_gradient",
          .precision = Precision::full,
          .infer = infer_gradient,
          .reference = backward,
          .samples = [] { return samples_of("huber_loss_gradient", true); },
          .backward = true};
}

}  // namespace dpt::operators
