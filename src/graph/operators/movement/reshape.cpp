// reshape: a view of the same elements, in the same order, with another shape.
#include <cstring>

#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any& attrs) {
  const Shape& shape = settings<Reshape>(attrs).shape;
  if (shape.elements() != in[0].shape.elements())
    fail(Fault::spec, "reshape: {} has {} elements, {} would have {}", in[0].shape.str(),
         in[0].shape.elements(), shape.str(), shape.elements());
  return {{in[0].dtype, shape}};
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  return {g.apply("reshape", {dy[0]}, Reshape{g.shape(n.in[0])})};
}

void reference(const KernelArgs& args, const std::any&) {
  if (args.out[0].data != args.in[0].data)
    std::memcpy(args.out[0].data, args.in[0].data, args.in[0].desc.bytes());
}

std::vector<Sample> samples() {
  return {
      {{"reshape", {f32({2, 3, 4})}, {f32({2, 12})}, Reshape{{2, 12}}}},
      {{"reshape", {f32({6})}, {f32({6, 1})}, Reshape{{6, 1}}}},
      {{"reshape", {i32({3, 1})}, {i32({3})}, Reshape{{3}}}},
  };
}

}  // namespace

OperatorType reshape() {
  return {.name = "reshape",
          .precision = Precision::follow,
          .infer = infer,
          .gradient = gradient,
          .reference = reference,
          .samples = samples,
          .view = true,
          .halves = true};
}

}  // namespace dpt::operators
