// triple(x) -> 3 x.
#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any&) {
  return same_as_first("triple", in);
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode&, std::span<const ValueId> dy) {
  return {g.apply("triple", {dy[0]})};
}

void forward(const KernelArgs& a, const std::any&) {
  map(a, [](double x) { return 3 * x; });
}

std::vector<Sample> samples() { return elementwise_samples("triple", 1); }

}  // namespace

OperatorType triple() {
  return in_any_layout({.name = "triple",
                        .precision = Precision::follow,
                        .infer = infer,
                        .gradient = gradient,
                        .reference = forward,
                        .samples = samples});
}

}  // namespace dpt::operators
