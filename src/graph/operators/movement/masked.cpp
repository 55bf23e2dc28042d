// masked: y = x * (mask * scale); the mask holds 0 and 1 as bytes, f32 or x's dtype. dx =
// masked(dy). It implements dropout when the executor draws masks (`random: torch`).
// masked_channels: the same with a mask [N, C] for the channels of x[N, C, ...].
#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in) {
  need_real("masked", in[0]);
  // PyTorch's generator draws masks as f32, whatever dtype autocast gives x.
  const bool known =
      in[1].dtype == DType::u8 || in[1].dtype == DType::f32 || in[1].dtype == in[0].dtype;
  if (in[1].shape != in[0].shape || !known)
    fail(Fault::spec, "masked: mask {} does not fit {}", str(in[1]), str(in[0]));
  return {in[0]};
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  return {g.apply("masked", {dy[0], n.in[1]}, n.attrs), kNoValue};
}

void reference(const KernelArgs& args, const Masked& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>();
    const auto y = args.out[0].as<T>();
    const T scale = static_cast<T>(attrs.scale);
    const auto apply = [&](auto mask) {
      for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] * (static_cast<T>(mask[i]) * scale);
    };
    if (args.in[1].desc.dtype == DType::u8)
      apply(args.in[1].as<const uint8_t>());
    else
      with_type_of(args.in[1], [&]<class M>(M) { apply(args.in[1].as<const M>()); });
  });
}

std::vector<TensorDesc> infer_channels(std::span<const TensorDesc> in) {
  need_real("masked_channels", in[0]);
  const Shape& x = in[0].shape;
  const DType mask = in[1].dtype;
  if (x.rank() < 3 || in[1].shape != Shape{x[0], x[1]} ||
      (mask != DType::f32 && mask != in[0].dtype))
    fail(Fault::spec, "masked_channels: mask {} does not fit {}", str(in[1]), str(in[0]));
  return {in[0]};
}

std::vector<ValueId> gradient_of_channels(GraphBuilder& g, const GraphNode& n,
                                          std::span<const ValueId> dy) {
  return {g.apply("masked_channels", {dy[0], n.in[1]}, n.attrs), kNoValue};
}

void channels_reference(const KernelArgs& args, const Masked& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>(), mask = args.in[1].as<const T>();
    const auto y = args.out[0].as<T>();
    const T scale = static_cast<T>(attrs.scale);
    const auto together = static_cast<size_t>(args.in[0].desc.shape.tail(2).elements());
    for (size_t c = 0; c < mask.size(); ++c)
      for (size_t i = c * together; i < (c + 1) * together; ++i) y[i] = x[i] * (mask[c] * scale);
  });
}

}  // namespace

Operators masked() {
  return {{.name = "masked",
           .precision = Precision::follow,
           .infer = typed<infer>,
           .gradient = gradient,
           .reference = typed<reference>,
           .layouts = Layouts::any},
          {.name = "masked_channels",
           .precision = Precision::follow,
           .infer = typed<infer_channels>,
           .gradient = gradient_of_channels,
           .reference = typed<channels_reference>,
           .torch_order = TorchOrder::of_first}};
}

}  // namespace dpt::operators
