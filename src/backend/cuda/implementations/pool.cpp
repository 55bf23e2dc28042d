// The GPU implementations of pooling: cuDNN's for channels_last, own kernels otherwise.
#include "backend/cuda/implementations/kernels.h"
#include "backend/cuda/implementations/support.h"
#include "backend/cuda/interface/descriptions.h"
#include "backend/cuda/interface/launch.h"
#include "backend/cuda/kernels/images.h"
#include "graph/windows.h"

namespace dpt::cuda {
namespace {

// Only max pooling has a second tensor: the indices, which its gradient reads.
const TensorDesc* indices_of(const KernelQuery& q) {
  const std::vector<TensorDesc>& all = is_gradient(q) ? q.in : q.out;
  return all.size() > 1 ? &all[1] : nullptr;
}
bool is_max(const KernelQuery& q) { return indices_of(q) != nullptr; }
bool is_adaptive(const KernelQuery& q) { return std::any_cast<Pool>(&q.attrs) == nullptr; }

Windows windows_of(const KernelQuery& q) {
  const Extents in = extents_of(image_in(q).shape), out = extents_of(image_out(q).shape);
  const bool adaptive = is_adaptive(q);
  const Window w = adaptive ? Window{} : settings<Pool>(q).window;
  const auto axis = [&](size_t i) {
    return Axis{.in = in[i],
                .out = out[i],
                .kernel = w.kernel[i],
                .stride = w.stride[i],
                .dilation = w.dilation[i],
                .before = w.before[i],
                .behind = w.behind[i],
                .adaptive = adaptive};
  };
  return {.x = image_of(image_in(q)),
          .y = image_of(image_out(q)),
          .planes = axis(0),
          .rows = axis(1),
          .columns = axis(2)};
}

template <class P>
std::unique_ptr<Kernel> max_pool(const KernelQuery& q) {
  const Windows s = windows_of(q);
  const int64_t n = count(q.out[0]);
  return with_number(q.in[0].dtype, [&]<class T>(T) -> std::unique_ptr<Kernel> {
    if (is_gradient(q))
      return enqueue([=](const KernelArgs& a, DeviceContext& c) {
        launch(c.stream, MaxPoolGradient<T, P>{s, at<T>(a.in[0]), at<P>(a.in[1]), at<T>(a.out[0])},
               n);
      });
    return enqueue([=](const KernelArgs& a, DeviceContext& c) {
      launch(c.stream, MaxPool<T, P>{s, at<T>(a.in[0]), at<T>(a.out[0]), at<P>(a.out[1])}, n);
    });
  });
}

std::unique_ptr<Kernel> mean_pool(const KernelQuery& q) {
  const Windows s = windows_of(q);
  const Pool none{.count_include_pad = false}, pool = is_adaptive(q) ? none : settings<Pool>(q);
  const MeanOf of{pool.count_include_pad, pool.divisor_override};
  const int64_t n = count(q.out[0]);
  return with_number(q.in[0].dtype, [&]<class T>(T) -> std::unique_ptr<Kernel> {
    if (is_gradient(q))
      return enqueue([=](const KernelArgs& a, DeviceContext& c) {
        launch(c.stream, MeanPoolGradient<T>{s, of, at<T>(a.in[0]), at<T>(a.out[0])}, n);
      });
    return enqueue([=](const KernelArgs& a, DeviceContext& c) {
      launch(c.stream, MeanPool<T>{s, of, at<T>(a.in[0]), at<T>(a.out[0])}, n);
    });
  });
}

std::unique_ptr<Kernel> own_kernel(const KernelQuery& q) {
  if (!is_max(q)) return mean_pool(q);
  return indices_of(q)->dtype == DType::u8 ? max_pool<uint8_t>(q) : max_pool<int32_t>(q);
}

std::string library_refuses(const KernelQuery& q) {
  const TensorDesc &x = image_in(q), &y = image_out(q);
  if (count(x) == 0 || count(y) == 0) return "it takes no empty tensors";
  for (const TensorDesc* d : {&x, &y})
    if (!same_order(d->shape, d->layout, Layout::channels_last))
      return "it takes images channels_last";
  const DnnPool d = pool_of(q);
  if (is_adaptive(q)) {
    for (int i = 2; i < d.x.rank(); ++i)
      if (d.x[i] % d.y[i] != 0) return "its windows are of one size";
    return not_one_type(q);
  }
  const auto s = settings<Pool>(q);
  if (d.window.dilation != Extents{1, 1, 1}) return "it takes no dilation";
  if (s.divisor_override != 0) return "it divides by the number of elements";
  if (d.kind == PoolKind::mean_with_padding && d.window.behind != s.window.behind)
    return "it would count elements beyond the padding";
  return not_one_type(q);
}

std::unique_ptr<Kernel> library(const KernelQuery& q) {
  DeviceContext& context = DeviceContext::current();
  const DnnPool d = pool_of(q);
  const DeviceContext::Prepared prepared = context.prepared(d);
  if (!prepared.work) {
    context.fall_back(prepared.why + "; dptrain's own kernels compute it");
    return own_kernel(q);
  }
  return enqueue(
      [=, work = prepared.work, gradient = is_gradient(q)](const KernelArgs& a, DeviceContext& c) {
        std::array<std::byte*, 3> tensors = {a.in[0].data, a.out[0].data, nullptr};
        if (d.kind == PoolKind::max) tensors[2] = gradient ? a.in[1].data : a.out[1].data;
        c.stream.run(*work, std::span(tensors).first(d.tensors()), c.workspace);
      });
}

std::string no_bytes(const KernelQuery&) {
  return "it stores indices as bytes, which fit only windows of up to 128 elements";
}

}  // namespace

// Extends the padding to the end of the last window, as cuDNN requires.
DnnPool pool_of(const KernelQuery& q) {
  DnnPool d{.kind = is_max(q) ? PoolKind::max : PoolKind::mean,
            .pass = is_gradient(q) ? DnnPass::backward : DnnPass::forward,
            .x = dnn_image(image_in(q).shape),
            .y = dnn_image(image_out(q).shape),
            .type = q.in[0].dtype};
  Window& w = d.window;
  const Extents in = extents_of(d.x), out = extents_of(d.y);
  if (is_adaptive(q)) {
    w.kernel = w.stride = {in[0] / out[0], in[1] / out[1], in[2] / out[2]};
    return d;
  }
  const auto s = settings<Pool>(q);
  w = s.window;
  if (!is_max(q) && s.count_include_pad) d.kind = PoolKind::mean_with_padding;
  for (size_t i = 0; i < 3; ++i) {
    const int64_t end = (out[i] - 1) * w.stride[i] + w.kernel[i];
    w.behind[i] = std::max(w.behind[i], end - in[i] - w.before[i]);
  }
  return d;
}

std::vector<KernelType> pool_rows() {
  std::vector<KernelType> out;
  for (std::string_view op : {"max_pool", "max_pool_gradient"}) {
    out.push_back({.op = op, .name = "cudnn", .refuses = no_bytes});
    out.push_back(own(op, not_one_type, own_kernel));
  }
  for (std::string_view op : {"adaptive_max_pool", "adaptive_max_pool_gradient"})
    out.push_back(own(op, not_one_type, own_kernel));
  for (std::string_view op :
       {"max_pool_bytes", "max_pool_bytes_gradient", "avg_pool", "avg_pool_gradient",
        "adaptive_avg_pool", "adaptive_avg_pool_gradient"}) {
    out.push_back({.op = op, .name = "cudnn", .refuses = library_refuses, .prepare = library});
    out.push_back(own(op, not_one_type, own_kernel));
  }
  return out;
}

}  // namespace dpt::cuda
