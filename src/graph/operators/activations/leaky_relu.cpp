// leaky_relu: y = x if x > 0, else negative_slope * x.
#include "graph/formulas/activation.h"
#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any&) {
  return same_as_first("leaky_relu", in);
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  return {g.apply("leaky_relu_gradient", {n.in[0], dy[0]}, n.attrs)};
}

void forward(const KernelArgs& a, const std::any& attrs) {
  const auto& s = settings<LeakyRelu>(attrs);
  map(a, [&](double x) { return formula::leaky_relu(x, s.negative_slope); });
}

void backward(const KernelArgs& a, const std::any& attrs) {
  const auto& s = settings<LeakyRelu>(attrs);
  map(a,
      [&](double x, double dy) { return formula::leaky_relu_gradient(x, dy, s.negative_slope); });
}

std::vector<Sample> samples() {
  return elementwise_samples("leaky_relu", 1, LeakyRelu{.negative_slope = 0.2}, {-4, 4}, {0});
}

std::vector<Sample> gradient_samples() {
  return elementwise_samples("leaky_relu_gradient", 2, LeakyRelu{.negative_slope = 0.2}, {-4, 4},
                             {0});
}

}  // namespace

OperatorType leaky_relu() {
  return in_any_layout({.name = "leaky_relu",
                        .precision = Precision::follow,
                        .infer = infer,
                        .gradient = gradient,
                        .reference = forward,
                        .samples = samples});
}

OperatorType leaky_relu_gradient() {
  return in_any_layout({.name = "leaky_relu_gradient",
                        .precision = Precision::follow,
                        .infer = infer,
                        .reference = backward,
                        .samples = gradient_samples});
}

}  // namespace dpt::operators
