// prelu: y = x if x > 0, else w[c] * x (He et al., "Delving Deep into Rectifiers", 2015). w is [1],
// or [C] with one weight for each channel of x[N, C, ...].
//   prelu_gradient(dy, x, w) -> dx
//   prelu_weight_gradient(dy, x) -> dw[PRelu::parameters]
#include "graph/formulas/activation.h"
#include "graph/operators/images/image.h"

namespace dpt::operators {
namespace {

void need_weight(const Shape& x, const Shape& w) {
  if (w != Shape{1} && (x.rank() < 2 || w != Shape{x[1]}))
    fail(Fault::spec, "prelu: weight {} is neither [1] nor the channels of {}", w.str(), x.str());
}

std::vector<TensorDesc> infer(std::span<const TensorDesc> in) {
  need_real("prelu", in[0]);
  need_weight(in[0].shape, in[1].shape);
  return {in[0]};
}

std::vector<TensorDesc> infer_input(std::span<const TensorDesc> in) {
  require(in[0] == in[1], "prelu_gradient: dy is like x");
  need_weight(in[1].shape, in[2].shape);
  return {in[0]};
}

std::vector<TensorDesc> infer_weight(std::span<const TensorDesc> in, const PRelu& attrs) {
  require(in[0] == in[1], "prelu_weight_gradient: dy is like x");
  const Shape w{attrs.parameters};
  need_weight(in[1].shape, w);
  return {{full(in[0].dtype), w}};
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  const ValueId x = n.in[0], w = n.in[1];
  return {g.apply("prelu_gradient", {dy[0], x, w}),
          g.apply("prelu_weight_gradient", {dy[0], x}, PRelu{g.shape(w)[0]})};
}

// Calls f(offset in x, index in the weight) for all elements.
template <class F>
void each_element(const TensorView& view, size_t parameters, F f) {
  const Image x(view);
  x.each([&](int64_t n, int64_t c, const Extents& p) {
    f(x.at(n, c, p), parameters == 1 ? 0 : static_cast<size_t>(c));
  });
}

void forward(const KernelArgs& args) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>(), w = args.in[1].as<const T>();
    const auto y = args.out[0].as<T>();
    each_element(args.in[0], w.size(), [&](size_t i, size_t c) {
      y[i] =
          static_cast<T>(formula::leaky_relu(static_cast<double>(x[i]), static_cast<double>(w[c])));
    });
  });
}

void input_gradient(const KernelArgs& args) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto dy = args.in[0].as<const T>(), x = args.in[1].as<const T>(),
               w = args.in[2].as<const T>();
    const auto dx = args.out[0].as<T>();
    each_element(args.in[1], w.size(), [&](size_t i, size_t c) {
      dx[i] = static_cast<T>(formula::leaky_relu_gradient(
          static_cast<double>(x[i]), static_cast<double>(dy[i]), static_cast<double>(w[c])));
    });
  });
}

void weight_gradient(const KernelArgs& args) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto dy = args.in[0].as<const T>(), x = args.in[1].as<const T>();
    const auto dw = args.out[0].as<T>();
    std::vector<double> sum(dw.size());
    each_element(args.in[1], dw.size(), [&](size_t i, size_t c) {
      if (!(x[i] > T{0})) sum[c] += static_cast<double>(dy[i]) * static_cast<double>(x[i]);
    });
    for (size_t c = 0; c < dw.size(); ++c) dw[c] = static_cast<T>(sum[c]);
  });
}

}  // namespace

Operators prelu() {
  return {{.name = "prelu",
           .precision = Precision::compute,
           .infer = typed<infer>,
           .gradient = gradient,
           .reference = typed<forward>,
           .layouts = Layouts::images,
           .torch_order = TorchOrder::of_first},
          {.name = "prelu_gradient",
           .precision = Precision::compute,
           .infer = typed<infer_input>,
           .reference = typed<input_gradient>,
           .layouts = Layouts::images,
           .traits = Trait::backward},
          {.name = "prelu_weight_gradient",
           .precision = Precision::compute,
           .infer = typed<infer_weight>,
           .reference = typed<weight_gradient>,
           .flops = elements_of_first_input,
           .layouts = Layouts::images,
           .traits = Trait::backward}};
}

}  // namespace dpt::operators
