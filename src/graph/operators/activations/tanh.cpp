// tanh: y = tanh(x).
#include "graph/formulas/activation.h"
#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any&) {
  return same_as_first("tanh", in);
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  return {g.apply("tanh_gradient", {n.out[0], dy[0]}, n.attrs)};
}

void forward(const KernelArgs& a, const std::any&) {
  map(a, [](double x) { return formula::tanh(x); });
}

void backward(const KernelArgs& a, const std::any&) {
  map(a, [](double y, double dy) { return formula::tanh_gradient(y, dy); });
}

std::vector<Sample> samples() { return elementwise_samples("tanh", 1, {}, {-4, 4}, {}); }

std::vector<Sample> gradient_samples() {
  return elementwise_samples("tanh_gradient", 2, {}, {-1, 1}, {});
}

}  // namespace

OperatorType tanh() {
  return in_any_layout({.name = "tanh",
                        .precision = Precision::follow,
                        .infer = infer,
                        .gradient = gradient,
                        .reference = forward,
                        .samples = samples});
}

OperatorType tanh_gradient() {
  return in_any_layout({.name = "tanh_gradient",
                        .precision = Precision::follow,
                        .infer = infer,
                        .reference = backward,
                        .samples = gradient_samples});
}

}  // namespace dpt::operators
