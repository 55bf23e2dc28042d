// Conversions of dtype, and loss scaling.
//   cast(x) -> x in another floating-point dtype
//   round_to(x f32) -> f32 with the nearest numbers of a half, for operators on halves that compute
//     in f32 (graph/passes/widen.h)
//   scale_gradient(x, scale f32[1]) -> x; its gradient is dy * scale: the loss scaling of
//     Micikevicius et al., "Mixed Precision Training", 2018
//   scale(x, scale f32[1]) -> x * scale
#include <cstring>

#include "base/half.h"
#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

DType type_of(const Cast& attrs) { return attrs.dtype; }

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const Cast& attrs) {
  need_real("cast", in[0]);
  return {{type_of(attrs), in[0].shape, in[0].layout}};
}

// dx has the dtype of x. If x is an f32 weight and y a half, dy is f32 already: gradients of
// weights are never rounded to a half (see full()).
std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  const DType type = g.desc(n.in[0]).dtype;
  return {g.desc(dy[0]).dtype == type ? dy[0] : g.apply("cast", {dy[0]}, Cast{type})};
}

template <class F>
void with_number(const TensorView& v, F f) {
  switch (v.desc.dtype) {
    case DType::bf16:
      return f([bits = v.as<uint16_t>()](size_t i) { return double{from_bf16(bits[i])}; });
    case DType::f16:
      return f([bits = v.as<uint16_t>()](size_t i) { return double{from_f16(bits[i])}; });
    case DType::f64:
      return f([x = v.as<double>()](size_t i) { return x[i]; });
    default:
      return f([x = v.as<float>()](size_t i) { return double{x[i]}; });
  }
}

void forward(const KernelArgs& args) {
  const TensorView& y = args.out[0];
  const auto set = [&](auto to, auto x, auto number_of) {
    for (size_t i = 0; i < to.size(); ++i) to[i] = number_of(x(i));
  };
  with_number(args.in[0], [&](auto x) {
    if (y.desc.dtype == DType::f64)
      set(y.as<double>(), x, [](double v) { return v; });
    else if (y.desc.dtype == DType::f32)
      set(y.as<float>(), x, [](double v) { return static_cast<float>(v); });
    else if (y.desc.dtype == DType::bf16)
      set(y.as<uint16_t>(), x, [](double v) { return to_bf16(static_cast<float>(v)); });
    else
      set(y.as<uint16_t>(), x, [](double v) { return to_f16(static_cast<float>(v)); });
  });
}

std::vector<TensorDesc> infer_round(std::span<const TensorDesc> in) {
  return same_as_first("round_to", in);
}

void round_reference(const KernelArgs& args, const Cast& attrs) {
  map(args,
      [t = type_of(attrs)](double x) { return double{rounded_to(t, static_cast<float>(x))}; });
}

void need_scale(std::string_view op, std::span<const TensorDesc> in) {
  need_real(op, in[0]);
  require(in[1].shape == Shape{1}, "a scale is one number");
}

std::vector<TensorDesc> infer_scale(std::span<const TensorDesc> in) {
  need_scale("scale", in);
  return {in[0]};
}

std::vector<ValueId> gradient_scaled(GraphBuilder& g, const GraphNode& n,
                                     std::span<const ValueId> dy) {
  return {g.apply("scale", {dy[0], n.in[1]}), kNoValue};
}

void copy(const KernelArgs& args) {
  if (args.out[0].data != args.in[0].data)
    std::memcpy(args.out[0].data, args.in[0].data, args.in[0].desc.bytes());
}

void scale_reference(const KernelArgs& args) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>();
    const auto y = args.out[0].as<T>();
    const T scale = args.in[1].as<const T>()[0];
    for (size_t i = 0; i < y.size(); ++i) y[i] = x[i] * scale;
  });
}

}  // namespace

Operators cast() {
  return {{.name = "cast",
           .precision = Precision::follow,
           .infer = typed<infer>,
           .gradient = gradient,
           .reference = typed<forward>,
           .layouts = Layouts::any,
           .traits = Trait::halves},
          {.name = "round_to",
           .precision = Precision::follow,
           .infer = typed<infer_round>,
           .reference = typed<round_reference>,
           .layouts = Layouts::any},
          {.name = "scale_gradient",
           .precision = Precision::follow,
           .infer = typed<infer_scale>,
           .gradient = gradient_scaled,
           .reference = typed<copy>,
           .traits = Trait::view},
          {.name = "scale",
           .precision = Precision::follow,
           .infer = typed<infer_scale>,
           .gradient = gradient_scaled,
           .reference = typed<scale_reference>,
           .layouts = Layouts::any}};
}

}  // namespace dpt::operators
