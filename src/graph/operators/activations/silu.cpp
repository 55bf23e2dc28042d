// silu: y = x * sigmoid(x).
#include "graph/formulas/activation.h"
#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any&) {
  return same_as_first("silu", in);
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  return {g.apply("silu_gradient", {n.in[0], dy[0]}, n.attrs)};
}

void forward(const KernelArgs& a, const std::any&) {
  map(a, [](double x) { return formula::silu(x); });
}

void backward(const KernelArgs& a, const std::any&) {
  map(a, [](double x, double dy) { return formula::silu_gradient(x, dy); });
}

std::vector<Sample> samples() { return elementwise_samples("silu", 1, {}, {-6, 6}, {}); }

std::vector<Sample> gradient_samples() {
  return elementwise_samples("silu_gradient", 2, {}, {-6, 6}, {});
}

}  // namespace

OperatorType silu() {
  return in_any_layout({.name = "silu",
                        .precision = Precision::follow,
                        .infer = infer,
                        .gradient = gradient,
                        .reference = forward,
                        .samples = samples});
}

OperatorType silu_gradient() {
  return in_any_layout({.name = "silu_gradient",
                        .precision = Precision::follow,
                        .infer = infer,
                        .reference = backward,
                        .samples = gradient_samples});
}

}  // namespace dpt::operators
