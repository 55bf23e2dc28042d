// relu6: y = min(max(0, x), 6); dx = dy if 0 < x < 6, else 0. nan is kept.
#include "graph/formulas/activation.h"
#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any&) {
  return same_as_first("relu6", in);
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  return {g.apply("relu6_gradient", {n.out[0], dy[0]}, n.attrs)};
}

void forward(const KernelArgs& a, const std::any&) {
  map(a, [](double x) { return formula::relu6(x); });
}

void backward(const KernelArgs& a, const std::any&) {
  map(a, [](double y, double dy) { return formula::relu6_gradient(y, dy); });
}

std::vector<Sample> samples() { return elementwise_samples("relu6", 1, {}, {-3, 9}, {0, 6}); }

std::vector<Sample> gradient_samples() {
  return elementwise_samples("relu6_gradient", 2, {}, {-3, 9}, {0, 6});
}

}  // namespace

OperatorType relu6() {
  return in_any_layout({.name = "relu6",
                        .precision = Precision::follow,
                        .infer = infer,
                        .gradient = gradient,
                        .reference = forward,
                        .samples = samples});
}

OperatorType relu6_gradient() {
  return selecting(in_any_layout({.name = "relu6_gradient",
                                  .precision = Precision::follow,
                                  .infer = infer,
                                  .reference = backward,
                                  .samples = gradient_samples}));
}

}  // namespace dpt::operators
