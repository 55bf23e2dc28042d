// triple(x) -> 3 x.
#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in) {
  return same_as_first("triple", in);
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode&, std::span<const ValueId> dy) {
  return {g.apply("triple", {dy[0]})};
}

void forward(const KernelArgs& a) {
  map(a, [](double x) { return 3 * x; });
}

}  // namespace

Operators triple() {
  return {{.name = "triple",
           .precision = Precision::follow,
           .infer = typed<infer>,
           .gradient = gradient,
           .reference = typed<forward>,
           .layouts = Layouts::any}};
}

}  // namespace dpt::operators
