// multiply: the element-wise product of two inputs of one shape.
#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in) {
  need_real("multiply", in[0]);
  if (in.size() != 2) fail(Fault::spec, "multiply: takes two inputs");
  if (in[1] != in[0])
    fail(Fault::spec, "multiply: {} and {} do not fit together", str(in[0]), str(in[1]));
  return {in[0]};
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  const ValueId da = g.apply("multiply", {dy[0], n.in[1]});
  return {da, g.apply("multiply", {dy[0], n.in[0]})};
}

void reference(const KernelArgs& args) {
  map(args, [](double a, double b) { return a * b; });
}

}  // namespace

Operators multiply() {
  return {{.name = "multiply",
           .precision = Precision::follow,
           .infer = typed<infer>,
           .gradient = gradient,
           .reference = typed<reference>,
           .layouts = Layouts::any}};
}

}  // namespace dpt::operators
