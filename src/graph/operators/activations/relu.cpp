// relu: y = max(0, x); dx = dy if y > 0, else 0. nan is kept.
#include "graph/formulas/activation.h"
#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any&) {
  return same_as_first("relu", in);
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  return {g.apply("relu_gradient", {n.out[0], dy[0]}, n.attrs)};
}

void forward(const KernelArgs& a, const std::any&) {
  map(a, [](double x) { return formula::relu(x); });
}

void backward(const KernelArgs& a, const std::any&) {
  map(a, [](double y, double dy) { return formula::relu_gradient(y, dy); });
}

std::vector<Sample> samples() { return elementwise_samples("relu", 1, {}, {-4, 4}, {0}); }

std::vector<Sample> gradient_samples() {
  return elementwise_samples("relu_gradient", 2, {}, {-4, 4}, {0});
}

}  // namespace

OperatorType relu() {
  return selecting(in_any_layout({.name = "relu",
                                  .precision = Precision::follow,
                                  .infer = infer,
                                  .gradient = gradient,
                                  .reference = forward,
                                  .samples = samples}));
}

OperatorType relu_gradient() {
  return selecting(in_any_layout({.name = "relu_gradient",
                                  .precision = Precision::follow,
                                  .infer = infer,
                                  .reference = backward,
                                  .samples = gradient_samples}));
}

}  // namespace dpt::operators
