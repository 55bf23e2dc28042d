// slice: elements begin .. begin + length - 1 of one dimension.
//   slice_gradient(dy) -> dx: dy at these elements, zeros elsewhere
#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const SliceOf& s) {
  need_dim("slice", in[0], s.dim);
  if (s.begin < 0 || s.length < 0 || s.begin + s.length > in[0].shape[s.dim])
    fail(Fault::spec, "slice: {} has no extents {} to {} in dimension {}", in[0].shape.str(),
         s.begin, s.begin + s.length, s.dim);
  return {{in[0].dtype, in[0].shape.with(s.dim, s.length)}};
}

std::vector<TensorDesc> infer_gradient(std::span<const TensorDesc> in, const SliceOf& s) {
  require(in[0].shape[s.dim] == s.length && s.begin + s.length <= s.extent,
          "slice_gradient: dy is the slice");
  return {{in[0].dtype, in[0].shape.with(s.dim, s.extent)}};
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  SliceOf s = settings<SliceOf>(n.attrs);
  s.extent = g.shape(n.in[0])[s.dim];
  return {g.apply("slice_gradient", {dy[0]}, s)};
}

void forward(const KernelArgs& args, const SliceOf& s) {
  const Along a = along(args.in[0].desc.shape, s.dim);
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>();
    const auto y = args.out[0].as<T>();
    for (int64_t o = 0; o < a.outer; ++o)
      for (int64_t i = 0; i < s.length * a.inner; ++i)
        y[static_cast<size_t>(o * s.length * a.inner + i)] =
            x[static_cast<size_t>((o * a.extent + s.begin) * a.inner + i)];
  });
}

void backward(const KernelArgs& args, const SliceOf& s) {
  const Along a = along(args.out[0].desc.shape, s.dim);
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto dy = args.in[0].as<const T>();
    const auto dx = args.out[0].as<T>();
    for (T& d : dx) d = 0;
    for (int64_t o = 0; o < a.outer; ++o)
      for (int64_t i = 0; i < s.length * a.inner; ++i)
        dx[static_cast<size_t>((o * a.extent + s.begin) * a.inner + i)] =
            dy[static_cast<size_t>(o * s.length * a.inner + i)];
  });
}

}  // namespace

Operators slice() {
  return {{.name = "slice",
           .precision = Precision::follow,
           .infer = typed<infer>,
           .gradient = gradient,
           .reference = typed<forward>,
           .traits = Trait::selects},
          {.name = "slice_gradient",
           .precision = Precision::follow,
           .infer = typed<infer_gradient>,
           .reference = typed<backward>,
           .traits = Trait::backward | Trait::selects}};
}

}  // namespace dpt::operators
