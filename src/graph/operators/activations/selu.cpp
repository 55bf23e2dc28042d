// selu: y = scale * elu(x), with constants that preserve mean 0 and variance 1.
#include "graph/formulas/activation.h"
#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any&) {
  return same_as_first("selu", in);
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  return {g.apply("selu_gradient", {n.in[0], dy[0]}, n.attrs)};
}

void forward(const KernelArgs& a, const std::any&) {
  map(a, [](double x) { return formula::selu(x); });
}

void backward(const KernelArgs& a, const std::any&) {
  map(a, [](double x, double dy) { return formula::selu_gradient(x, dy); });
}

std::vector<Sample> samples() { return elementwise_samples("selu", 1, {}, {-4, 4}, {0}); }

std::vector<Sample> gradient_samples() {
  return elementwise_samples("selu_gradient", 2, {}, {-4, 4}, {0});
}

}  // namespace

OperatorType selu() {
  return in_any_layout({.name = "selu",
                        .precision = Precision::follow,
                        .infer = infer,
                        .gradient = gradient,
                        .reference = forward,
                        .samples = samples});
}

OperatorType selu_gradient() {
  return in_any_layout({.name = "selu_gradient",
                        .precision = Precision::follow,
                        .infer = infer,
                        .reference = backward,
                        .samples = gradient_samples});
}

}  // namespace dpt::operators
