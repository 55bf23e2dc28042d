// upsample_nearest: row i of y[N, C, H', W'] is row floor(i * r) of x[N, C, H, W], computed in
// float32, with r = 1 / scale, or H / H' if no scale is given; columns and depths likewise. With
// Resize::exact it is row floor((i + 1/2) * r).
//   upsample_nearest_gradient(dy) -> dx[N, C, Resize::extents]
#include "graph/operators/images/copied_elements.h"

namespace dpt::operators {
namespace {

constexpr std::string_view kNothing = "an empty image cannot be upsampled";

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const Resize& attrs) {
  return infer_resized("upsample_nearest", kNothing, in, attrs);
}

std::vector<TensorDesc> infer_gradient(std::span<const TensorDesc> in, const Resize& attrs) {
  return infer_resized("upsample_nearest_gradient", kNothing, in, attrs);
}

Sources sources(const Shape& x, const Shape& y, const Resize& s) {
  const Extents in = extents_of(x), out = extents_of(y);
  Sources from;
  for (size_t i = 0; i < 3; ++i) from[i] = nearest_sources(in[i], out[i], s, i);
  return from;
}

void forward(const KernelArgs& args, const Resize& attrs) {
  copy_elements(args, sources(args.in[0].desc.shape, args.out[0].desc.shape, attrs));
}

void backward(const KernelArgs& args, const Resize& attrs) {
  sum_copies(args, sources(args.out[0].desc.shape, args.in[0].desc.shape, attrs));
}

}  // namespace

Operators upsample_nearest() {
  return {{.name = "upsample_nearest",
           .precision = Precision::full_on_cuda,
           .infer = typed<infer>,
           .gradient = gradient_to_extents<Resize>,
           .reference = typed<forward>,
           .layouts = Layouts::images,
           .traits = Trait::selects},
          {.name = "upsample_nearest_gradient",
           .precision = Precision::follow,
           .infer = typed<infer_gradient>,
           .reference = typed<backward>,
           .flops = elements_of_first_input,
           .layouts = Layouts::images,
           .traits = Trait::backward}};
}

}  // namespace dpt::operators
