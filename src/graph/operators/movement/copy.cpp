// copy: copies a value from the memory of one stage to that of another (graph.h, Note [stages]).
// The gradient is copied in the opposite direction.
#include <cstring>

#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in) { return {in[0]}; }

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  const Copy way = settings<Copy>(n.attrs);
  return {g.apply("copy", {dy[0]}, Copy{way.to, way.from})};
}

void reference(const KernelArgs& args) {
  std::memcpy(args.out[0].data, args.in[0].data, args.in[0].desc.bytes());
}

}  // namespace

Operators copy() {
  return {{.name = "copy",
           .precision = Precision::follow,
           .infer = typed<infer>,
           .gradient = gradient,
           .reference = typed<reference>,
           .flops = no_flops,
           .layouts = Layouts::any,
           .traits = Trait::halves}};
}

}  // namespace dpt::operators
