// reorder: converts a value to another memory layout (base/tensor.h). choose_layouts() inserts it
// after differentiation, so it has no gradient.
#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const Reorder& attrs) {
  TensorDesc out = in[0];
  out.layout = attrs.layout;
  return {out};
}

void reference(const KernelArgs& args) {
  const TensorDesc& x = args.in[0].desc;
  copy_layout(x.shape, size_of(x.dtype), x.layout, args.in[0].data, args.out[0].desc.layout,
              args.out[0].data);
}

}  // namespace

Operators reorder() {
  return {{.name = "reorder",
           .precision = Precision::follow,
           .infer = typed<infer>,
           .reference = typed<reference>,
           .flops = no_flops,
           .traits = Trait::halves}};
}

}  // namespace dpt::operators
