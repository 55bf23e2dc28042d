// concat: joins inputs along one dimension. The gradient slices dy.
#include "base/checked.h"
#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const Concat& attrs) {
  const int dim = attrs.dim;
  need_dim("concat", in[0], dim);
  Checked extent = 0;
  for (const TensorDesc& d : in) {
    if (d.dtype != in[0].dtype || d.shape.rank() != in[0].shape.rank() ||
        d.shape.with(dim, 0) != in[0].shape.with(dim, 0))
      fail(Fault::spec, "concat: {} and {} differ in more than dimension {}", str(in[0]), str(d),
           dim);
    extent += d.shape[dim];
  }
  return {{in[0].dtype, in[0].shape.with(dim, extent.value())}};
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  SliceOf piece{.dim = settings<Concat>(n.attrs).dim};
  std::vector<ValueId> out;
  for (ValueId v : n.in) {
    piece.length = g.shape(v)[piece.dim];
    out.push_back(g.apply("slice", {dy[0]}, piece));
    piece.begin += piece.length;
  }
  return out;
}

void reference(const KernelArgs& args, const Concat& attrs) {
  const int dim = attrs.dim;
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto y = args.out[0].as<T>();
    size_t to = 0;
    for (int64_t o = 0; o < along(args.in[0].desc.shape, dim).outer; ++o)
      for (const TensorView& v : args.in) {
        const Along a = along(v.desc.shape, dim);
        const auto x = v.as<const T>();
        for (int64_t i = 0; i < a.extent * a.inner; ++i)
          y[to++] = x[static_cast<size_t>(o * a.extent * a.inner + i)];
      }
  });
}

}  // namespace

Operators concat() {
  return {{.name = "concat",
           .precision = Precision::follow,
           .infer = typed<infer>,
           .gradient = gradient,
           .reference = typed<reference>,
           .torch_order = TorchOrder::image,
           .traits = Trait::selects}};
}

}  // namespace dpt::operators
