// The GPU implementations of resizing, of padding with copies, and of sums by channel in any
// layout.
#include "backend/cuda/implementations/kernels.h"
#include "backend/cuda/implementations/support.h"
#include "backend/cuda/interface/launch.h"
#include "backend/cuda/kernels/images.h"
#include "graph/attrs.h"

namespace dpt::cuda {
namespace {

Nearest nearest(int64_t in, int64_t out, const Resize& s, size_t axis) {
  return {.in = in,
          .out = out,
          .ratio = formula::linear_ratio<float>(in, out, s.scale[axis], false),
          .exact = s.exact};
}

std::unique_ptr<Kernel> upsample(const KernelQuery& q) {
  const auto s = settings<Resize>(q);
  const ImageShape from = image_of(image_in(q)), to = image_of(image_out(q));
  const Nearest rows = nearest(from.h, to.h, s, 0), columns = nearest(from.w, to.w, s, 1);
  const int64_t n = count(q.out[0]);
  return with_number(q.in[0].dtype, [&]<class T>(T) -> std::unique_ptr<Kernel> {
    if (is_gradient(q))
      return enqueue([=](const KernelArgs& a, DeviceContext& c) {
        launch(c.stream,
               UpsampleGradient<T>{from, to, rows, columns, at<T>(a.in[0]), at<T>(a.out[0])}, n);
      });
    return enqueue([=](const KernelArgs& a, DeviceContext& c) {
      launch(c.stream, Upsample<T>{from, to, rows, columns, at<T>(a.in[0]), at<T>(a.out[0])}, n);
    });
  });
}

template <int kTaps>
std::unique_ptr<Kernel> interpolate(const KernelQuery& q) {
  const auto s = settings<Resize>(q);
  const ImageShape from = image_of(image_in(q)), to = image_of(image_out(q));
  const auto axis = [&](int64_t in, int64_t out, double scale) {
    return Interpolated<kTaps>{
        .in = in,
        .out = out,
        .ratio = formula::linear_ratio<float>(in, out, scale, s.align_corners),
        .align_corners = s.align_corners};
  };
  const Interpolated<kTaps> rows = axis(from.h, to.h, s.scale[0]),
                            columns = axis(from.w, to.w, s.scale[1]);
  const int64_t n = count(q.out[0]);
  return with_number(q.in[0].dtype, [&]<class T>(T) -> std::unique_ptr<Kernel> {
    if (is_gradient(q))
      return enqueue([=](const KernelArgs& a, DeviceContext& c) {
        launch(
            c.stream,
            InterpolateGradient<T, kTaps>{from, to, rows, columns, at<T>(a.in[0]), at<T>(a.out[0])},
            n);
      });
    return enqueue([=](const KernelArgs& a, DeviceContext& c) {
      launch(c.stream,
             Interpolate<T, kTaps>{from, to, rows, columns, at<T>(a.in[0]), at<T>(a.out[0])}, n);
    });
  });
}

std::unique_ptr<Kernel> pad_inside(const KernelQuery& q) {
  const auto s = settings<Pad>(q);
  const ImageShape from = image_of(image_in(q)), to = image_of(image_out(q));
  const size_t last = static_cast<size_t>(q.in[0].shape.rank()) - 1;
  const auto axis = [&](int64_t extent, size_t dim) {
    return CopiedPadding{.extent = extent,
                         .before = s.before[dim],
                         .behind = s.behind[dim],
                         .from = static_cast<formula::PadFrom>(s.mode)};
  };
  // Rank 3 has no height; its channels are not padded.
  const CopiedPadding rows = axis(from.h, last - 1), columns = axis(from.w, last);
  const int64_t n = count(q.out[0]);
  return with_number(q.in[0].dtype, [&]<class T>(T) -> std::unique_ptr<Kernel> {
    if (is_gradient(q))
      return enqueue([=](const KernelArgs& a, DeviceContext& c) {
        launch(c.stream,
               PadInsideGradient<T>{from, to, rows, columns, at<T>(a.in[0]), at<T>(a.out[0])}, n);
      });
    return enqueue([=](const KernelArgs& a, DeviceContext& c) {
      launch(c.stream, PadInside<T>{from, to, rows, columns, at<T>(a.in[0]), at<T>(a.out[0])}, n);
    });
  });
}

std::string refuses_sum(const KernelQuery& q) {
  return q.out[0].dtype != DType::f32 ? "it makes f32" : "";
}
// Sums by channel (sum_channels), or by the last dimension (sum_rows).
std::unique_ptr<Kernel> sum(const KernelQuery& q) {
  const Rows rows =
      q.op == "sum_rows"
          ? Rows{.columns = q.in[0].shape.back(), .inner = 1, .elements = count(q.in[0])}
          : channels_of(q.in[0]);
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
  std::vector<KernelType> out = {own("sum_channels", refuses_sum, sum),
                                 own("sum_rows", refuses_sum, sum)};
  for (std::string_view op : {"upsample_nearest", "upsample_nearest_gradient"})
    out.push_back(own(op, not_one_type, upsample));
  for (std::string_view op : {"upsample_bilinear", "upsample_bilinear_gradient"})
    out.push_back(own(op, not_one_type, interpolate<2>));
  for (std::string_view op : {"upsample_bicubic", "upsample_bicubic_gradient"})
    out.push_back(own(op, not_one_type, interpolate<4>));
  for (std::string_view op : {"pad_inside", "pad_inside_gradient"})
    out.push_back(own(op, not_one_type, pad_inside));
  return out;
}

}  // namespace dpt::cuda
