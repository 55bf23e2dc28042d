// A product and relu in one operator, as GPU libraries offer it. Made by graph/passes/fuse.cpp once
// the graph is differentiated, because relu's gradient reads only y.
//   linear_relu(x, w, [b]) -> y = relu(linear(x, w, [b]))
//   convolution_relu(x, w, [b]) -> y = relu(convolution(x, w, [b]))
// The product before relu's gradient. The library does not read y, but a mask with one bit per
// element:
//   linear_relu_mask(x, w, [b]) -> y, mask[..., 16 bytes per 128 elements of y's last dimension]
//   matmul_relu_gradient(dy, w, y, mask) -> dx = relu_gradient(y, matmul(dy, w))
// Only the library that writes the mask can read it. The reference implementation uses y and fills
// the mask with zeros.
#include <algorithm>

#include "graph/formulas/activation.h"
#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer_linear(std::span<const TensorDesc> in, const std::any& attrs) {
  return op("linear").infer(in, attrs);
}

TensorDesc mask_of(const TensorDesc& y) {
  return {DType::u8, y.shape.with(y.shape.rank() - 1, (y.shape.back() + 127) / 128 * 16)};
}

std::vector<TensorDesc> infer_mask(std::span<const TensorDesc> in, const std::any& attrs) {
  const TensorDesc y = infer_linear(in, attrs)[0];
  return {y, mask_of(y)};
}

std::vector<TensorDesc> infer_gradient(std::span<const TensorDesc> in, const std::any& attrs) {
  std::vector<TensorDesc> dx = op("matmul").infer(in.first(2), attrs);
  require(dx[0] == in[2] && in[3] == mask_of(in[2]), "matmul_relu_gradient: dx is like y");
  return dx;
}

std::vector<TensorDesc> infer_convolution(std::span<const TensorDesc> in, const std::any& attrs) {
  return op("convolution").infer(in, attrs);
}

void relu(const TensorView& y) {
  with_type_of(y, [&]<class T>(T) {
    for (T& v : y.as<T>()) v = formula::relu(v);
  });
}

void linear_forward(const KernelArgs& args, const std::any& attrs) {
  op("linear").reference(args, attrs);
  relu(args.out[0]);
}

void mask_forward(const KernelArgs& args, const std::any& attrs) {
  linear_forward({.in = args.in, .out = args.out.first(1), .context = args.context}, attrs);
  std::ranges::fill(args.out[1].as<uint8_t>(), uint8_t{0});
}

void gradient_forward(const KernelArgs& args, const std::any& attrs) {
  op("matmul").reference({.in = args.in.first(2), .out = args.out, .context = args.context}, attrs);
  const TensorView in[] = {args.in[2], args.out[0]};
  op("relu_gradient").reference({in, args.out, args.context}, {});
}

void convolution_forward(const KernelArgs& args, const std::any& attrs) {
  op("convolution").reference(args, attrs);
  relu(args.out[0]);
}

double linear_flops(std::span<const TensorDesc> in, std::span<const TensorDesc> out) {
  return op("linear").flops(in, out);
}

double gradient_flops(std::span<const TensorDesc> in, std::span<const TensorDesc> out) {
  return op("matmul").flops(in, out);
}

double convolution_flops(std::span<const TensorDesc> in, std::span<const TensorDesc> out) {
  return op("convolution").flops(in, out);
}

}  // namespace

Operators product_relu() {
  return {{.name = "linear_relu",
           .precision = Precision::compute,
           .infer = infer_linear,
           .reference = linear_forward,
           .flops = linear_flops,
           .weight = {.index = 1}},
          {.name = "linear_relu_mask",
           .precision = Precision::compute,
           .infer = infer_mask,
           .reference = mask_forward,
           .flops = linear_flops,
           .weight = {.index = 1}},
          {.name = "matmul_relu_gradient",
           .precision = Precision::compute,
           .infer = infer_gradient,
           .reference = gradient_forward,
           .flops = gradient_flops,
           .traits = Trait::backward},
          {.name = "convolution_relu",
           .precision = Precision::compute,
           .infer = infer_convolution,
           .reference = convolution_forward,
           .flops = convolution_flops,
           .layouts = Layouts::images,
           .weight = {.index = 1}}};
}

}  // namespace dpt::operators
