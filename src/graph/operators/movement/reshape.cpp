// reshape: a view of the same elements, in the same order, with another shape.
#include <cstring>

#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const Reshape& attrs) {
  const Shape& shape = attrs.shape;
  if (shape.elements() != in[0].shape.elements())
    fail(Fault::spec, "reshape: {} has {} elements, {} would have {}", in[0].shape.str(),
         in[0].shape.elements(), shape.str(), shape.elements());
  return {{in[0].dtype, shape}};
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  return {g.apply("reshape", {dy[0]}, Reshape{g.shape(n.in[0])})};
}

void reference(const KernelArgs& args) {
  if (args.out[0].data != args.in[0].data)
    std::memcpy(args.out[0].data, args.in[0].data, args.in[0].desc.bytes());
}

}  // namespace

Operators reshape() {
  return {{.name = "reshape",
           .precision = Precision::follow,
           .infer = typed<infer>,
           .gradient = gradient,
           .reference = typed<reference>,
           .traits = Trait::view | Trait::halves}};
}

}  // namespace dpt::operators
