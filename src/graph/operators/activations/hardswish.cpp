// hardswish: y = x * min(max(x + 3, 0), 6) / 6.
#include "graph/formulas/activation.h"
#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any&) {
  return same_as_first("hardswish", in);
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  return {g.apply("hardswish_gradient", {n.in[0], dy[0]}, n.attrs)};
}

void forward(const KernelArgs& a, const std::any&) {
  map(a, [](double x) { return formula::hardswish(x); });
}

void backward(const KernelArgs& a, const std::any&) {
  map(a, [](double x, double dy) { return formula::hardswish_gradient(x, dy); });
}

std::vector<Sample> samples() { return elementwise_samples("hardswish", 1, {}, {-5, 5}, {-3, 3}); }

std::vector<Sample> gradient_samples() {
  return elementwise_samples("hardswish_gradient", 2, {}, {-5, 5}, {-3, 3});
}

}  // namespace

OperatorType hardswish() {
  return in_any_layout({.name = "hardswish",
                        .precision = Precision::follow,
                        .infer = infer,
                        .gradient = gradient,
                        .reference = forward,
                        .samples = samples});
}

OperatorType hardswish_gradient() {
  return in_any_layout({.name = "hardswish_gradient",
                        .precision = Precision::follow,
                        .infer = infer,
                        .reference = backward,
                        .samples = gradient_samples});
}

}  // namespace dpt::operators
