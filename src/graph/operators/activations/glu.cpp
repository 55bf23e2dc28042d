// glu: y = a * sigmoid(b) with a and b the first and the second half of x along Glu::dim
// (graph/formulas/glu.h).
//   glu_gradient(dy, x) -> dx
#include "graph/formulas/glu.h"

#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const Glu& attrs) {
  need_real("glu", in[0]);
  const int dim = attrs.dim;
  need_dim("glu", in[0], dim);
  const Shape& x = in[0].shape;
  if (x[dim] % 2 != 0) fail(Fault::spec, "glu: dimension {} of {} cannot be halved", dim, x.str());
  return {{in[0].dtype, x.with(dim, x[dim] / 2)}};
}

std::vector<TensorDesc> infer_gradient(std::span<const TensorDesc> in, const Glu& attrs) {
  require(infer(in.subspan(1), attrs)[0] == in[0], "glu_gradient: dy is half of x");
  return {in[1]};
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  return {g.apply("glu_gradient", {dy[0], n.in[0]}, n.attrs)};
}

// Calls f(offset in y, offset of a, offset of b) for each element of y.
template <class F>
void each_pair(const Shape& x, const Glu& attrs, F f) {
  const Along a = along(x, attrs.dim);
  const int64_t half = a.extent / 2 * a.inner;
  for (int64_t o = 0; o < a.outer; ++o)
    for (int64_t i = 0; i < half; ++i)
      f(static_cast<size_t>(o * half + i), static_cast<size_t>(2 * o * half + i),
        static_cast<size_t>((2 * o + 1) * half + i));
}

void forward(const KernelArgs& args, const Glu& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>();
    const auto y = args.out[0].as<T>();
    each_pair(args.in[0].desc.shape, attrs, [&](size_t k, size_t a, size_t b) {
      y[k] = static_cast<T>(formula::glu(static_cast<double>(x[a]), static_cast<double>(x[b])));
    });
  });
}

void backward(const KernelArgs& args, const Glu& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto dy = args.in[0].as<const T>(), x = args.in[1].as<const T>();
    const auto dx = args.out[0].as<T>();
    each_pair(args.in[1].desc.shape, attrs, [&](size_t k, size_t a, size_t b) {
      const auto up = static_cast<double>(dy[k]), gate = static_cast<double>(x[b]);
      dx[a] = static_cast<T>(formula::glu_gradient_a(gate, up));
      dx[b] = static_cast<T>(formula::glu_gradient_b(static_cast<double>(x[a]), gate, up));
    });
  });
}

}  // namespace

Operators glu() {
  return {{.name = "glu",
           .precision = Precision::follow,
           .infer = typed<infer>,
           .gradient = gradient,
           .reference = typed<forward>,
           .torch_order = TorchOrder::of_first},
          {.name = "glu_gradient",
           .precision = Precision::follow,
           .infer = typed<infer_gradient>,
           .reference = typed<backward>,
           .traits = Trait::backward}};
}

}  // namespace dpt::operators
