// softplus: y = log(1 + exp(beta * x)) / beta, or x if beta * x > threshold.
#include "graph/formulas/activation.h"
#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any&) {
  return same_as_first("softplus", in);
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  return {g.apply("softplus_gradient", {n.in[0], dy[0]}, n.attrs)};
}

void forward(const KernelArgs& a, const std::any& attrs) {
  const auto& s = settings<Softplus>(attrs);
  map(a, [&](double x) { return formula::softplus(x, s.beta, s.threshold); });
}

void backward(const KernelArgs& a, const std::any& attrs) {
  const auto& s = settings<Softplus>(attrs);
  map(a,
      [&](double x, double dy) { return formula::softplus_gradient(x, dy, s.beta, s.threshold); });
}

std::vector<Sample> samples() {
  auto out = elementwise_samples("softplus", 1, Softplus{}, {-4, 4});
  for (Sample& s :
       elementwise_samples("softplus", 1, Softplus{.beta = 2, .threshold = 3}, {-4, 4}, {1.5}))
    out.push_back(std::move(s));
  return out;
}

std::vector<Sample> gradient_samples() {
  auto out = elementwise_samples("softplus_gradient", 2, Softplus{}, {-4, 4});
  for (Sample& s : elementwise_samples("softplus_gradient", 2, Softplus{.beta = 2, .threshold = 3},
                                       {-4, 4}, {1.5}))
    out.push_back(std::move(s));
  return out;
}

}  // namespace

OperatorType softplus() {
  return in_any_layout({.name = "softplus",
                        .precision = Precision::full_on_cuda,
                        .infer = infer,
                        .gradient = gradient,
                        .reference = forward,
                        .samples = samples});
}

OperatorType softplus_gradient() {
  return in_any_layout({.name = "softplus_gradient",
                        .precision = Precision::full,
                        .infer = infer,
                        .reference = backward,
                        .samples = gradient_samples});
}

}  // namespace dpt::operators
