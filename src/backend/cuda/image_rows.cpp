// The rows of pooling, resizing, and sums by channel of images in any layout.
#include "backend/cuda/kernels.h"
#include "backend/cuda/kernels/images.h"
#include "backend/cuda/support.h"
#include "graph/attrs.h"

namespace dpt::cuda {
namespace {

Axis axis_of(const Window& w, size_t i, int64_t in, int64_t out) {
  return {in, out, w.kernel[i], w.stride[i], w.dilation[i], w.before[i], w.behind[i], false};
}

Windows windows_of(const TensorDesc& x, const TensorDesc& y, const Window& w) {
  const ImageShape from = image_of(x), to = image_of(y);
  return {from, to, axis_of(w, 0, from.h, to.h), axis_of(w, 1, from.w, to.w)};
}

Windows pieces_of(const TensorDesc& x, const TensorDesc& y) {
  const ImageShape from = image_of(x), to = image_of(y);
  const auto axis = [](int64_t in, int64_t out) { return Axis{in, out, 1, 1, 1, 0, 0, true}; };
  return {from, to, axis(from.h, to.h), axis(from.w, to.w)};
}

std::unique_ptr<Kernel> max_pool(const KernelQuery& q) {
  const Windows s = windows_of(q.in[0], q.out[0], settings<Pool>(q).window);
  return with_number(q.in[0].dtype, [&]<class T>(T) {
    return enqueue([s, n = count(q.out[0])](const KernelArgs& a, DeviceContext& c) {
      launch(c.stream, MaxPool<T>{s, at<T>(a.in[0]), at<T>(a.out[0]), at<int32_t>(a.out[1])}, n);
    });
  });
}

std::unique_ptr<Kernel> max_pool_gradient(const KernelQuery& q) {
  const Windows s = windows_of(q.out[0], q.in[0], settings<Pool>(q).window);
  return with_number(q.in[0].dtype, [&]<class T>(T) {
    return enqueue([s, n = count(q.out[0])](const KernelArgs& a, DeviceContext& c) {
      launch(c.stream, MaxPoolGradient<T>{s, at<T>(a.in[0]), at<int32_t>(a.in[1]), at<T>(a.out[0])},
             n);
    });
  });
}

std::unique_ptr<Kernel> mean(const KernelQuery& q, const Windows& s, MeanOf of) {
  return with_number(q.in[0].dtype, [&]<class T>(T) -> std::unique_ptr<Kernel> {
    const int64_t n = count(q.out[0]);
    if (q.op.ends_with("_gradient"))
      return enqueue([=](const KernelArgs& a, DeviceContext& c) {
        launch(c.stream, MeanPoolGradient<T>{s, of, at<T>(a.in[0]), at<T>(a.out[0])}, n);
      });
    return enqueue([=](const KernelArgs& a, DeviceContext& c) {
      launch(c.stream, MeanPool<T>{s, of, at<T>(a.in[0]), at<T>(a.out[0])}, n);
    });
  });
}

const TensorDesc& image_in(const KernelQuery& q) {
  return q.op.ends_with("_gradient") ? q.out[0] : q.in[0];
}
const TensorDesc& image_out(const KernelQuery& q) {
  return q.op.ends_with("_gradient") ? q.in[0] : q.out[0];
}

std::unique_ptr<Kernel> avg_pool(const KernelQuery& q) {
  const auto s = settings<Pool>(q);
  return mean(q, windows_of(image_in(q), image_out(q), s.window),
              {s.count_include_pad, s.divisor_override});
}

std::unique_ptr<Kernel> adaptive_avg_pool(const KernelQuery& q) {
  return mean(q, pieces_of(image_in(q), image_out(q)), {false, 0});
}

Nearest nearest(int64_t in, int64_t out, double scale) {
  return {
      in, out,
      scale > 0 ? static_cast<float>(1 / scale) : static_cast<float>(in) / static_cast<float>(out)};
}

std::unique_ptr<Kernel> upsample(const KernelQuery& q) {
  const auto s = settings<Resize>(q);
  const ImageShape from = image_of(image_in(q)), to = image_of(image_out(q));
  const Nearest rows = nearest(from.h, to.h, s.scale[0]),
                columns = nearest(from.w, to.w, s.scale[1]);
  const int64_t n = count(q.out[0]);
  return with_number(q.in[0].dtype, [&]<class T>(T) -> std::unique_ptr<Kernel> {
    if (q.op.ends_with("_gradient"))
      return enqueue([=](const KernelArgs& a, DeviceContext& c) {
        launch(c.stream,
               UpsampleGradient<T>{from, to, rows, columns, at<T>(a.in[0]), at<T>(a.out[0])}, n);
      });
    return enqueue([=](const KernelArgs& a, DeviceContext& c) {
      launch(c.stream, Upsample<T>{from, to, rows, columns, at<T>(a.in[0]), at<T>(a.out[0])}, n);
    });
  });
}

std::string refuses_sum(const KernelQuery& q) {
  return q.out[0].dtype != DType::f32 ? "it makes f32" : "";
}
// Of channels, or of the last extent.
std::unique_ptr<Kernel> sum(const KernelQuery& q) {
  const Rows rows =
      q.op == "sum_rows" ? Rows{q.in[0].shape.back(), 1, count(q.in[0])} : channels_of(q.in[0]);
  const ColumnPlan plan(count(q.in[0]) / std::max<int64_t>(1, rows.columns), rows.columns);
  DeviceContext::current().reserve(plan.bytes(1));
  return with_number(q.in[0].dtype, [&]<class T>(T) {
    return enqueue([=](const KernelArgs& a, DeviceContext& c) {
      sum_columns<ColumnTerm<T>, float>(c, plan, {rows, at<T>(a.in[0])}, {at<float>(a.out[0])});
    });
  });
}

}  // namespace

std::vector<KernelType> image_rows() {
  std::vector<KernelType> out = {own("max_pool", not_one_type, max_pool),
                                 own("max_pool_gradient", not_one_type, max_pool_gradient),
                                 own("sum_channels", refuses_sum, sum),
                                 own("sum_rows", refuses_sum, sum)};
  for (std::string_view op : {"avg_pool", "avg_pool_gradient"})
    out.push_back(own(op, not_one_type, avg_pool));
  for (std::string_view op : {"adaptive_avg_pool", "adaptive_avg_pool_gradient"})
    out.push_back(own(op, not_one_type, adaptive_avg_pool));
  for (std::string_view op : {"upsample_nearest", "upsample_nearest_gradient"})
    out.push_back(own(op, not_one_type, upsample));
  return out;
}

}  // namespace dpt::cuda
