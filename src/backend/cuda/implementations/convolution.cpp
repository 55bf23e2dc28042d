// The GPU implementations of convolutions: cuDNN's for channels_last, own kernels otherwise.
#include "backend/cpu/convolution_roles.h"
#include "backend/cuda/implementations/kernels.h"
#include "backend/cuda/implementations/support.h"
#include "backend/cuda/interface/launch.h"
#include "backend/cuda/kernels/products.h"
#include "graph/attrs.h"
#include "graph/windows.h"

namespace dpt::cuda {
namespace {

using Pass = ConvolutionPass;

bool has_bias(const KernelQuery& q) { return q.in.size() > 2; }

template <Pass kPass>
std::string refuses(const KernelQuery& q) {
  for (const TensorDesc& d : q.in)
    if (d.dtype != q.in[0].dtype) return "it takes one type";
  return q.out[0].dtype == (kPass == Pass::weight_gradient ? DType::f32 : q.in[0].dtype)
             ? ""
             : fmt::format("it does not produce {}", name_of(q.out[0].dtype));
}

template <Pass kPass>
std::string library_refuses(const KernelQuery& q) {
  const ConvolutionRoles o(q, kPass);
  for (const TensorDesc* d : {o.x, o.w, o.y}) {
    if (!same_order(d->shape, d->layout, Layout::channels_last))
      return "it takes images and weights channels_last";
    if (d->shape.elements() == 0) return "it takes no empty tensors";
  }
  if (has_bias(q) && kPass != Pass::forward) return "it adds a bias only in the forward pass";
  // Fails for transposed convolutions whose output_padding is at least a stride.
  const Window w = settings<Convolution>(q).window;
  const Extents x = extents_of(o.x->shape), y = extents_of(o.y->shape);
  for (size_t i = 0; i < 3; ++i)
    if ((x[i] + w.before[i] + w.behind[i] - covered(w, i)) / w.stride[i] + 1 != y[i])
      return "it does not support an output_padding of a stride or more";
  return refuses<kPass>(q);
}

template <Pass kPass, bool kRelu>
std::unique_ptr<Kernel> convolve(const KernelQuery& q);

// With relu if cuDNN has such an algorithm, else relu is applied afterwards. (Without a bias only
// engines that cuDNN compiles at run time have relu.)
template <Pass kPass, bool kRelu>
std::unique_ptr<Kernel> library(const KernelQuery& q) {
  const ConvolutionRoles o(q, kPass);
  const auto s = settings<Convolution>(q);
  DeviceContext& context = DeviceContext::current();
  DnnConvolution d{.pass = kPass,
                   .x = dnn_image(o.x->shape),
                   .w = dnn_image(o.w->shape),
                   .y = dnn_image(o.y->shape),
                   .window = s.window,
                   .groups = s.groups,
                   .in = q.in[0].dtype,
                   .out = q.out[0].dtype,
                   .tf32 = context.tf32,
                   .bias = has_bias(q),
                   .relu = kRelu};
  DeviceContext::Prepared prepared = context.prepared(d);
  AfterKernel clip;
  if (!prepared.work && d.relu) {
    d.relu = false;
    prepared = context.prepared(d);
    clip = clip_result(q);
  }
  if (!prepared.work) {
    context.fall_back(prepared.why + "; dptrain's own kernel computes it, far slower");
    return convolve<kPass, kRelu>(q);
  }
  constexpr bool swaps = kPass == Pass::weight_gradient;  // x is the first tensor there
  return enqueue([=, work = prepared.work, bias = d.bias](const KernelArgs& a, DeviceContext& c) {
    const std::array<std::byte*, 4> tensors = {a.in[swaps ? 1 : 0].data, a.in[swaps ? 0 : 1].data,
                                               a.out[0].data, bias ? a.in[2].data : nullptr};
    c.stream.run(*work, std::span(tensors).first(bias ? 4 : 3), c.workspace);
    if (clip) clip(a, c);
  });
}

ConvolutionShape shape_of(const KernelQuery& q, const ConvolutionRoles& o) {
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

template <Pass kPass, bool kRelu>
std::unique_ptr<Kernel> convolve(const KernelQuery& q) {
  const ConvolutionShape s = shape_of(q, {q, kPass});
  const int64_t n = count(q.out[0]);
  return with_number(q.in[0].dtype, [&]<class T>(T) -> std::unique_ptr<Kernel> {
    if (kPass == Pass::forward)
      return enqueue([=, clip = kRelu ? clip_result(q) : AfterKernel()](const KernelArgs& a,
                                                                        DeviceContext& c) {
        launch(
            c.stream,
            Convolve<T>{s, at<T>(a.in[0]), at<T>(a.in[1]), at_or_null<T>(a.in, 2), at<T>(a.out[0])},
            n);
        if (clip) clip(a, c);
      });
    if (kPass == Pass::input_gradient)
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

template <Pass kPass, bool kRelu = false>
void add_rows(std::vector<KernelType>& out, std::string_view op) {
  out.push_back({.op = op,
                 .name = "cudnn",
                 .refuses = library_refuses<kPass>,
                 .prepare = library<kPass, kRelu>});
  out.push_back(own(op, refuses<kPass>, convolve<kPass, kRelu>));
}

}  // namespace

std::vector<KernelType> convolution_rows() {
  std::vector<KernelType> out;
  add_rows<Pass::forward>(out, "convolution");
  add_rows<Pass::forward, true>(out, "convolution_relu");
  add_rows<Pass::input_gradient>(out, "convolution_transpose");
  add_rows<Pass::weight_gradient>(out, "convolution_weight_gradient");
  return out;
}

}  // namespace dpt::cuda
