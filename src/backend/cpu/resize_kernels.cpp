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

// Along one extent of x and y.
using SourcesOf = Sources (*)(const KernelQuery& q, const Shape& x, const Shape& y, size_t axis);

Sources padded(const KernelQuery& q, const Shape& x, const Shape& y, size_t axis) {
  const auto& pad = std::any_cast<const Pad&>(q.attrs);
  return one_source(extents_of(x)[axis], pad_sources(x, extents_of(y)[axis], pad, axis));
}

Sources nearest(const KernelQuery& q, const Shape& x, const Shape& y, size_t axis) {
  const auto& resize = std::any_cast<const Resize&>(q.attrs);
  const int64_t in = extents_of(x)[axis], out = extents_of(y)[axis];
  return one_source(in, nearest_sources(in, out, resize, axis));
}

template <int kTaps>
Sources interpolated(const KernelQuery& q, const Shape& x, const Shape& y, size_t axis) {
  const auto& resize = std::any_cast<const Resize&>(q.attrs);
  const int64_t in = extents_of(x)[axis], out = extents_of(y)[axis];
  const bool align_corners = resize.align_corners;
  const auto ratio = formula::linear_ratio<float>(in, out, resize.scale[axis], align_corners);
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

std::string refuses(const KernelQuery& q) { return not_images(q, DType::f32); }

std::string refuses_bicubic(const KernelQuery& q) {
  return q.in[0].shape.rank() == 5 ? "it sums at most 4 rows" : refuses(q);
}

template <SourcesOf kSources>
std::unique_ptr<Kernel> prepare(const KernelQuery& q) {
  const bool gradient = is_gradient(q);
  const auto [x, y] = forward_shapes(q);
  const auto channels = static_cast<size_t>(x[1]), samples = static_cast<size_t>(x[0]);
  const size_t from = elements(q.in[0]) / samples, to = elements(q.out[0]) / samples;
  Sources rows = product(kSources(q, x, y, 0), kSources(q, x, y, 1)),
          columns = kSources(q, x, y, 2);
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
  return {simd_row("upsample_nearest", refuses, prepare<nearest>),
          simd_row("upsample_nearest_gradient", refuses, prepare<nearest>),
          simd_row("upsample_bilinear", refuses, prepare<interpolated<2>>),
          simd_row("upsample_bilinear_gradient", refuses, prepare<interpolated<2>>),
          simd_row("upsample_bicubic", refuses_bicubic, prepare<interpolated<4>>),
          simd_row("upsample_bicubic_gradient", refuses_bicubic, prepare<interpolated<4>>),
          simd_row("pad_inside", refuses, prepare<padded>),
          simd_row("pad_inside_gradient", refuses, prepare<padded>)};
}

}  // namespace dpt
