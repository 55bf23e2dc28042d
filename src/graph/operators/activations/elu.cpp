// elu: y = x if x > 0, else alpha * (exp(x) - 1).
#include "graph/formulas/activation.h"
#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any&) {
  return same_as_first("elu", in);
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  return {g.apply("elu_gradient", {n.in[0], dy[0]}, n.attrs)};
}

void forward(const KernelArgs& a, const std::any& attrs) {
  const auto& s = settings<Elu>(attrs);
  map(a, [&](double x) { return formula::elu(x, s.alpha); });
}

void backward(const KernelArgs& a, const std::any& attrs) {
  const auto& s = settings<Elu>(attrs);
  map(a, [&](double x, double dy) { return formula::elu_gradient(x, dy, s.alpha); });
}

std::vector<Sample> samples() {
  return elementwise_samples("elu", 1, Elu{.alpha = 0.7}, {-4, 4}, {0});
}

std::vector<Sample> gradient_samples() {
  return elementwise_samples("elu_gradient", 2, Elu{.alpha = 0.7}, {-4, 4}, {0});
}

}  // namespace

OperatorType elu() {
  return in_any_layout({.name = "elu",
                        .precision = Precision::follow,
                        .infer = infer,
                        .gradient = gradient,
                        .reference = forward,
                        .samples = samples});
}

OperatorType elu_gradient() {
  return in_any_layout({.name = "elu_gradient",
                        .precision = Precision::follow,
                        .infer = infer,
                        .reference = backward,
                        .samples = gradient_samples});
}

}  // namespace dpt::operators
