// The CPU implementations of operators that resize images in channels_last.
#include <algorithm>
#include <numeric>
#include <vector>

#include "backend/cpu/kernels.h"
#include "backend/cpu/scratch.h"
#include "backend/cpu/simd/resize.h"
#include "backend/cpu/support.h"
#include "graph/attrs.h"
#include "graph/formulas/resample.h"
#include "graph/operator.h"
#include "graph/windows.h"

namespace dpt {
namespace {

// The sources of each position of y along one dimension.
struct Sources {
  size_t in, out, taps = 1;
  std::vector<int32_t> at;
  std::vector<float> weight;

  bool keeps() const {
    if (in != out) return false;
    for (size_t i = 0; i < at.size(); ++i)
      if (weight[i] != 0 && static_cast<size_t>(at[i]) != i / taps) return false;
    return true;
  }
  ResizeAxis axis() const {
    return {.in = in,
            .out = out,
            .taps = taps,
            .at = at.data(),
            .weight = weight.data(),
            .keeps = keeps()};
  }
};

// at: the one source of each position.
Sources one_source(int64_t in, const std::vector<int64_t>& at) {
  return {.in = static_cast<size_t>(in),
          .out = at.size(),
          .at = std::vector<int32_t>(at.begin(), at.end()),
          .weight = std::vector<float>(at.size(), 1)};
}

template <int kTaps>
Sources interpolated(int64_t in, int64_t out, double scale, bool align_corners) {
  const auto ratio = formula::linear_ratio<float>(in, out, scale, align_corners);
  Sources s{.in = static_cast<size_t>(in),
            .out = static_cast<size_t>(out),
            .taps = kTaps,
            .at = {},
            .weight = {}};
  for (int64_t i = 0; i < out; ++i) {
    const auto taps = formula::taps_of<kTaps>(i, in, out, ratio, align_corners);
    for (int k = 0; k < kTaps; ++k) {
      s.at.push_back(static_cast<int32_t>(taps.at[k]));
      s.weight.push_back(static_cast<float>(taps.weight[k]));
    }
  }
  if (!s.keeps()) return s;
  std::vector<int64_t> same(static_cast<size_t>(in));
  std::iota(same.begin(), same.end(), 0);
  return one_source(in, same);
}

// Along one extent of x and y.
Sources sources_of(const KernelQuery& q, const Shape& x, const Shape& y, size_t axis) {
  const int64_t in = extents_of(x)[axis], out = extents_of(y)[axis];
  if (q.op.starts_with("pad_inside"))
    return one_source(in, pad_sources(x, out, std::any_cast<const Pad&>(q.attrs), axis));
  const auto& resize = std::any_cast<const Resize&>(q.attrs);
  if (q.op.starts_with("upsample_nearest"))
    return one_source(in, nearest_sources(in, out, resize, axis));
  const auto make = q.op.starts_with("upsample_bilinear") ? interpolated<2> : interpolated<4>;
  return make(in, out, resize.scale[axis], resize.align_corners);
}

// The sources of the rows of a volume, which are counted through its depth.
Sources product(const Sources& depth, const Sources& height) {
  Sources s{.in = depth.in * height.in,
            .out = depth.out * height.out,
            .taps = depth.taps * height.taps,
            .at = {},
            .weight = {}};
  for (size_t d = 0; d < depth.out; ++d)
    for (size_t h = 0; h < height.out; ++h)
      for (size_t k = 0; k < s.taps; ++k) {
        const size_t i = d * depth.taps + k / height.taps, j = h * height.taps + k % height.taps;
        s.at.push_back(depth.at[i] * static_cast<int32_t>(height.in) + height.at[j]);
        s.weight.push_back(depth.weight[i] * height.weight[j]);
      }
  return s;
}

std::string refuses_resize(const KernelQuery& q) {
  if (q.op.starts_with("upsample_bicubic") && q.in[0].shape.rank() == 5)
    return "it sums at most 4 rows";
  return not_images(q, DType::f32);
}

std::unique_ptr<Kernel> prepare_resize(const KernelQuery& q) {
  const bool gradient = op(q.op).is(Trait::backward);
  const auto [x, y] = forward_shapes(q);
  const auto channels = static_cast<size_t>(x[1]), samples = static_cast<size_t>(x[0]);
  const size_t from = elements(q.in[0]) / samples, to = elements(q.out[0]) / samples;
  Sources rows = product(sources_of(q, x, y, 0), sources_of(q, x, y, 1)),
          columns = sources_of(q, x, y, 2);
  const size_t bytes = columns.in * channels * sizeof(float);
  scratch(bytes);
  return call([=, rows = std::move(rows), columns = std::move(columns)](const KernelArgs& a) {
    static const ResizeKernels& simd = resize_simd(simd_kernels().isa);
    const ResizeArgs args{.c = channels,
                          .rows = rows.axis(),
                          .columns = columns.axis(),
                          .row = reinterpret_cast<float*>(scratch(bytes))};
    for (size_t n = 0; n < samples; ++n) {
      const float* const in = data(a.in[0]) + n * from;
      float* const out = data(a.out[0]) + n * to;
      if (gradient) std::fill_n(out, to, 0.0F);
      (gradient ? simd.gradient : simd.forward)(in, out, args);
    }
  });
}

}  // namespace

std::vector<KernelType> resize_kernels() {
  const std::string_view isa = simd_kernels().name;
  std::vector<KernelType> out;
  for (std::string_view op : {"upsample_nearest", "upsample_nearest_gradient", "upsample_bilinear",
                              "upsample_bilinear_gradient", "upsample_bicubic",
                              "upsample_bicubic_gradient", "pad_inside", "pad_inside_gradient"})
    out.push_back({.op = op, .name = isa, .refuses = refuses_resize, .prepare = prepare_resize});
  for (KernelType& row : out) row.by_sample = true;
  return out;
}

}  // namespace dpt
