// sigmoid: y = 1 / (1 + exp(-x)).
#include "graph/formulas/activation.h"
#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any&) {
  return same_as_first("sigmoid", in);
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  return {g.apply("sigmoid_gradient", {n.out[0], dy[0]}, n.attrs)};
}

void forward(const KernelArgs& a, const std::any&) {
  map(a, [](double x) { return formula::sigmoid(x); });
}

void backward(const KernelArgs& a, const std::any&) {
  map(a, [](double y, double dy) { return formula::sigmoid_gradient(y, dy); });
}

std::vector<Sample> samples() { return elementwise_samples("sigmoid", 1, {}, {-6, 6}, {}); }

std::vector<Sample> gradient_samples() {
  return elementwise_samples("sigmoid_gradient", 2, {}, {0, 1}, {});
}

}  // namespace

OperatorType sigmoid() {
  return in_any_layout({.name = "sigmoid",
                        .precision = Precision::follow,
                        .infer = infer,
                        .gradient = gradient,
                        .reference = forward,
                        .samples = samples});
}

OperatorType sigmoid_gradient() {
  return in_any_layout({.name = "sigmoid_gradient",
                        .precision = Precision::follow,
                        .infer = infer,
                        .reference = backward,
                        .samples = gradient_samples});
}

}  // namespace dpt::operators
