// The GPU implementations of convolutions: cuDNN's for channels_last, own kernels otherwise.
#include "backend/cuda/implementations/kernels.h"
#include "backend/cuda/implementations/support.h"
#include "backend/cuda/interface/launch.h"
#include "backend/cuda/kernels/products.h"
#include "graph/attrs.h"
#include "graph/windows.h"

namespace dpt::cuda {
namespace {

// The x, w and y of y = convolution(x, w), whichever of them the node computes.
struct Operands {
  const TensorDesc *x, *w, *y;
  ConvolutionPass pass;
};

bool has_relu(const KernelQuery& q) { return q.op == "convolution_relu"; }

Operands operands_of(const KernelQuery& q) {
  if (q.op == "convolution" || has_relu(q))
    return {.x = &q.in[0], .w = &q.in[1], .y = &q.out[0], .pass = ConvolutionPass::forward};
  if (q.op == "convolution_transpose")
    return {.x = &q.out[0], .w = &q.in[1], .y = &q.in[0], .pass = ConvolutionPass::input_gradient};
  return {.x = &q.in[1], .w = &q.out[0], .y = &q.in[0], .pass = ConvolutionPass::weight_gradient};
}

bool has_bias(const KernelQuery& q) {
  return q.op != "convolution_weight_gradient" && q.in.size() > 2;
}

std::string refuses(const KernelQuery& q) {
  for (const TensorDesc& d : q.in)
    if (d.dtype != q.in[0].dtype) return "it takes one type";
  const bool weight = q.op == "convolution_weight_gradient";
  return q.out[0].dtype == (weight ? DType::f32 : q.in[0].dtype)
             ? ""
             : fmt::format("it does not produce {}", name_of(q.out[0].dtype));
}

std::string library_refuses(const KernelQuery& q) {
  const Operands o = operands_of(q);
  for (const TensorDesc* d : {o.x, o.w, o.y}) {
    if (!same_order(d->shape, d->layout, Layout::channels_last))
      return "it takes images and weights channels_last";
    if (d->shape.elements() == 0) return "it takes no empty tensors";
  }
  if (has_bias(q) && o.pass != ConvolutionPass::forward)
    return "it adds a bias only in the forward pass";
  // Fails for transposed convolutions whose output_padding is at least a stride.
  const Window w = settings<Convolution>(q).window;
  const Extents x = extents_of(o.x->shape), y = extents_of(o.y->shape);
  for (size_t i = 0; i < 3; ++i)
    if ((x[i] + w.before[i] + w.behind[i] - covered(w, i)) / w.stride[i] + 1 != y[i])
      return "it does not support an output_padding of a stride or more";
  return refuses(q);
}

std::unique_ptr<Kernel> convolve(const KernelQuery& q);

// With relu if cuDNN has such an algorithm, else relu is applied afterwards. (Without a bias only
// engines that cuDNN compiles at run time have relu.)
std::unique_ptr<Kernel> library(const KernelQuery& q) {
  const Operands o = operands_of(q);
  const auto s = settings<Convolution>(q);
  DeviceContext& context = DeviceContext::current();
  DnnConvolution d{.pass = o.pass,
                   .x = dnn_image(o.x->shape),
                   .w = dnn_image(o.w->shape),
                   .y = dnn_image(o.y->shape),
                   .window = s.window,
                   .groups = s.groups,
                   .in = q.in[0].dtype,
                   .out = q.out[0].dtype,
                   .tf32 = context.tf32,
                   .bias = has_bias(q),
                   .relu = has_relu(q)};
  DeviceContext::Prepared prepared = context.prepared(d);
  AfterKernel clip;
  if (!prepared.work && d.relu) {
    d.relu = false;
    prepared = context.prepared(d);
    clip = clip_result(q);
  }
  if (!prepared.work) {
    context.fall_back(prepared.why + "; dptrain's own kernel computes it, far slower");
    return convolve(q);
  }
  const bool swaps = o.pass == ConvolutionPass::weight_gradient;  // x is the first tensor there
  return enqueue([=, work = prepared.work, bias = d.bias](const KernelArgs& a, DeviceContext& c) {
    const std::array<std::byte*, 4> tensors = {a.in[swaps ? 1 : 0].data, a.in[swaps ? 0 : 1].data,
                                               a.out[0].data, bias ? a.in[2].data : nullptr};
    c.stream.run(*work, std::span(tensors).first(bias ? 4 : 3), c.workspace);
    if (clip) clip(a, c);
  });
}

ConvolutionShape shape_of(const KernelQuery& q) {
  const Operands o = operands_of(q);
  const auto s = settings<Convolution>(q);
  const Window& w = s.window;
  return {.x = image_of(*o.x),
          .w = image_of(*o.w),
          .y = image_of(*o.y),
          .groups = s.groups,
          .stride = {w.stride[0], w.stride[1], w.stride[2]},
          .dilation = {w.dilation[0], w.dilation[1], w.dilation[2]},
          .before = {w.before[0], w.before[1], w.before[2]}};
}

std::unique_ptr<Kernel> convolve(const KernelQuery& q) {
  const ConvolutionShape s = shape_of(q);
  const int64_t n = count(q.out[0]);
  return with_number(q.in[0].dtype, [&]<class T>(T) -> std::unique_ptr<Kernel> {
    if (q.op == "convolution" || has_relu(q))
      return enqueue([=, clip = has_relu(q) ? clip_result(q) : AfterKernel()](const KernelArgs& a,
                                                                              DeviceContext& c) {
        launch(
            c.stream,
            Convolve<T>{s, at<T>(a.in[0]), at<T>(a.in[1]), at_or_null<T>(a.in, 2), at<T>(a.out[0])},
            n);
        if (clip) clip(a, c);
      });
    if (q.op == "convolution_transpose")
      return enqueue([=](const KernelArgs& a, DeviceContext& c) {
        launch(c.stream,
               ConvolveBack<T>{s, at<T>(a.in[0]), at<T>(a.in[1]), at_or_null<T>(a.in, 2),
                               at<T>(a.out[0])},
               n);
      });
    return enqueue([=](const KernelArgs& a, DeviceContext& c) {
      launch(c.stream, ConvolveWeight<T>{s, at<T>(a.in[0]), at<T>(a.in[1]), at<float>(a.out[0])},
             n);
    });
  });
}

}  // namespace

std::vector<KernelType> convolution_rows() {
  std::vector<KernelType> out;
  for (std::string_view op : {"convolution", "convolution_relu", "convolution_transpose",
                              "convolution_weight_gradient"}) {
    out.push_back({.op = op, .name = "cudnn", .refuses = library_refuses, .prepare = library});
    out.push_back(own(op, refuses, convolve));
  }
  return out;
}

}  // namespace dpt::cuda
