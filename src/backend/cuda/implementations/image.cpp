// The GPU implementations of resizing, of padding with copies, and of sums by channel in any
// layout.
#include "backend/cuda/implementations/kernels.h"
#include "backend/cuda/implementations/support.h"
#include "backend/cuda/interface/launch.h"
#include "backend/cuda/kernels/images.h"
#include "graph/windows.h"

namespace dpt::cuda {
namespace {

// Enqueues `Pixels`, or its gradient, with a value of axis(index of the extent) for each extent.
template <template <class> class Pixels, template <class> class Gradient, class MakeAxis>
std::unique_ptr<Kernel> of_axes(const KernelQuery& q, MakeAxis axis) {
  const ImageShape from = image_of(image_in(q)), to = image_of(image_out(q));
  const auto planes = axis(0), rows = axis(1), columns = axis(2);
  const int64_t n = count(q.out[0]);
  return with_number(q.in[0].dtype, [&]<class T>(T) -> std::unique_ptr<Kernel> {
    if (is_gradient(q))
      return enqueue([=](const KernelArgs& a, DeviceContext& c) {
        launch(c.stream,
               Gradient<T>{from, to, planes, rows, columns, at<T>(a.in[0]), at<T>(a.out[0])}, n);
      });
    return enqueue([=](const KernelArgs& a, DeviceContext& c) {
      launch(c.stream, Pixels<T>{from, to, planes, rows, columns, at<T>(a.in[0]), at<T>(a.out[0])},
             n);
    });
  });
}

std::unique_ptr<Kernel> upsample(const KernelQuery& q) {
  const auto s = settings<Resize>(q);
  const Extents in = extents_of(image_in(q).shape), out = extents_of(image_out(q).shape);
  return of_axes<Upsample, UpsampleGradient>(q, [&](size_t i) {
    return Nearest{.in = in[i],
                   .out = out[i],
                   .ratio = formula::linear_ratio<float>(in[i], out[i], s.scale[i], false),
                   .exact = s.exact};
  });
}

template <int kTaps>
struct Interpolation {
  template <class T>
  using Pixels = Interpolate<T, kTaps>;
  template <class T>
  using Gradient = InterpolateGradient<T, kTaps>;
};

template <int kTaps>
std::unique_ptr<Kernel> interpolate(const KernelQuery& q) {
  const auto s = settings<Resize>(q);
  const Extents in = extents_of(image_in(q).shape), out = extents_of(image_out(q).shape);
  using Of = Interpolation<kTaps>;
  return of_axes<Of::template Pixels, Of::template Gradient>(q, [&](size_t i) {
    return Interpolated<kTaps>{
        .in = in[i],
        .out = out[i],
        .ratio = formula::linear_ratio<float>(in[i], out[i], s.scale[i], s.align_corners),
        .align_corners = s.align_corners};
  });
}

std::unique_ptr<Kernel> pad_inside(const KernelQuery& q) {
  const auto s = settings<Pad>(q);
  const Extents in = extents_of(image_in(q).shape);
  const int rank = q.in[0].shape.rank();
  return of_axes<PadInside, PadInsideGradient>(q, [&](size_t i) {
    // Neither samples and channels nor extents that an image does not have are padded.
    const int dim = rank - 3 + static_cast<int>(i);
    const auto d = static_cast<size_t>(dim);
    return CopiedPadding{.extent = in[i],
                         .before = dim < 2 ? 0 : s.before[d],
                         .behind = dim < 2 ? 0 : s.behind[d],
                         .from = s.mode};
  });
}

std::string refuses_sum(const KernelQuery& q) {
  return q.out[0].dtype != DType::f32 ? "it makes f32" : "";
}
std::unique_ptr<Kernel> sum(const KernelQuery& q, const Rows& rows) {
  const ColumnPlan plan(count(q.in[0]) / std::max<int64_t>(1, rows.columns), rows.columns);
  DeviceContext::current().reserve(plan.bytes(1));
  return with_number(q.in[0].dtype, [&]<class T>(T) {
    return enqueue([=](const KernelArgs& a, DeviceContext& c) {
      sum_columns<ColumnTerm<T>, float>(c, plan, {rows, at<T>(a.in[0])}, {at<float>(a.out[0])});
    });
  });
}

std::unique_ptr<Kernel> sum_channels(const KernelQuery& q) { return sum(q, channels_of(q.in[0])); }
std::unique_ptr<Kernel> sum_rows(const KernelQuery& q) {
  return sum(q, {.columns = q.in[0].shape.back(), .inner = 1, .elements = count(q.in[0])});
}

}  // namespace

std::vector<KernelType> image_rows() {
  std::vector<KernelType> out = {own("sum_channels", refuses_sum, sum_channels),
                                 own("sum_rows", refuses_sum, sum_rows)};
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
