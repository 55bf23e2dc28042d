// gelu: y = x * Phi(x), Phi: the standard normal distribution; exact or approximated with tanh.
#include "graph/formulas/activation.h"
#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any&) {
  return same_as_first("gelu", in);
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  return {g.apply("gelu_gradient", {n.in[0], dy[0]}, n.attrs)};
}

void forward(const KernelArgs& a, const std::any& attrs) {
  const bool tanh = settings<Gelu>(attrs).tanh;
  map(a, [&](double x) { return tanh ? formula::gelu_tanh(x) : formula::gelu(x); });
}

void backward(const KernelArgs& a, const std::any& attrs) {
  const bool tanh = settings<Gelu>(attrs).tanh;
  map(a, [&](double x, double dy) {
    return tanh ? formula::gelu_tanh_gradient(x, dy) : formula::gelu_gradient(x, dy);
  });
}

std::vector<Sample> samples() {
  auto out = elementwise_samples("gelu", 1, Gelu{}, {-4, 4});
  for (Sample& s : elementwise_samples("gelu", 1, Gelu{.tanh = true}, {-4, 4}, {}))
    out.push_back(std::move(s));
  return out;
}

std::vector<Sample> gradient_samples() {
  auto out = elementwise_samples("gelu_gradient", 2, Gelu{}, {-4, 4});
  for (Sample& s : elementwise_samples("gelu_gradient", 2, Gelu{.tanh = true}, {-4, 4}, {}))
    out.push_back(std::move(s));
  return out;
}

}  // namespace

OperatorType gelu() {
  return in_any_layout({.name = "gelu",
                        .precision = Precision::follow,
                        .infer = infer,
                        .gradient = gradient,
                        .reference = forward,
                        .samples = samples});
}

OperatorType gelu_gradient() {
  return in_any_layout({.name = "gelu_gradient",
                        .precision = Precision::follow,
                        .infer = infer,
                        .reference = backward,
                        .samples = gradient_samples});
}

}  // namespace dpt::operators
