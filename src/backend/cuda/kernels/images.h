// Pooling, resizing and padding of images [N, C, D, H, W] in any layout. Gradients gather:
// each element of dx is a sum over the windows that contain it, in the order of the windows and in
// double.
#pragma once

#include <math.h>

#include "backend/cuda/kernels/number.h"
#include "backend/cuda/kernels/own_kernel.h"
#include "graph/formulas/resample.h"

namespace dpt::cuda {

// A dense image: extents, and the distances of neighbors in memory.
struct ImageShape {
  int64_t n, c, d, h, w;
  int64_t step_n, step_c, step_d, step_h, step_w;
  DPT_HOST_DEVICE int64_t at(int64_t in, int64_t ic, int64_t id, int64_t ih, int64_t iw) const {
    return in * step_n + ic * step_c + id * step_d + ih * step_h + iw * step_w;
  }
  DPT_HOST_DEVICE int64_t elements() const { return n * c * d * h * w; }
};
struct Position {
  int64_t n, c, d, h, w;
};
// Coordinates of the element at index i in memory. Most images have one plane, which saves two
// divisions.
DPT_FORMULA Position position_of(const ImageShape& s, int64_t i) {
  return {.n = i / s.step_n % s.n,
          .c = i / s.step_c % s.c,
          .d = s.d == 1 ? 0 : i / s.step_d % s.d,
          .h = i / s.step_h % s.h,
          .w = i / s.step_w % s.w};
}

struct Range {
  int64_t first, last;  // [first, last)
};
DPT_FORMULA int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
DPT_FORMULA int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

// Windows of pooling, or the pieces of adaptive pooling, along one axis of `in` elements and `out`
// windows (graph/windows.h).
struct Axis {
  int64_t in, out;
  int64_t kernel, stride, dilation, before, behind;
  bool adaptive;
  DPT_HOST_DEVICE Range elements(int64_t window) const {
    if (adaptive) return {window * in / out, ((window + 1) * in + out - 1) / out};
    const int64_t begin = window * stride - before;
    const int64_t missing = begin < 0 ? (-begin + dilation - 1) / dilation : 0;
    return {begin + missing * dilation, least(begin + dilation * (kernel - 1) + 1, in)};
  }
  // From the beginning of the window; 32 bits, since 64 are divided by calls.
  DPT_HOST_DEVICE int32_t distance(int64_t window, int64_t i) const {
    return static_cast<int32_t>(i + before - window * stride);
  }
  // The windows that may contain element i. With dilation some of them do not: see has().
  DPT_HOST_DEVICE Range windows(int64_t i) const {
    if (adaptive) return {i * out / in, least(out, ((i + 1) * out + in - 1) / in)};
    const int64_t from = i + before - dilation * (kernel - 1);
    return {from > 0 ? (from + stride - 1) / stride : 0, least(out, (i + before) / stride + 1)};
  }
  DPT_HOST_DEVICE bool has(int64_t window, int64_t i) const {
    return adaptive || distance(window, i) % static_cast<int32_t>(dilation) == 0;
  }
  // Index of element i in the window, including padding.
  DPT_HOST_DEVICE int64_t index_of(int64_t window, int64_t i) const {
    return distance(window, i) / static_cast<int32_t>(dilation);
  }
  DPT_HOST_DEVICE int64_t with_padding(int64_t window) const {
    const int64_t begin = window * stride - before;
    return least(begin + kernel, in + behind) - begin;
  }
};

struct Windows {
  ImageShape x, y;
  Axis planes, rows, columns;
  // Whether there is one plane and one window of it, as for images.
  DPT_HOST_DEVICE bool flat() const {
    return x.d == 1 && y.d == 1 && planes.kernel == 1 && planes.before == 0;
  }
  // Index of the element (d, h, w): in its channel, or as a byte in the window `of`.
  DPT_HOST_DEVICE void index_of(int32_t& out, const Position& /*of*/, int64_t d, int64_t h,
                                int64_t w) const {
    out = static_cast<int32_t>((d * x.h + h) * x.w + w);
  }
  DPT_HOST_DEVICE void index_of(uint8_t& out, const Position& of, int64_t d, int64_t h,
                                int64_t w) const {
    const int64_t plane = flat() ? 0 : planes.index_of(of.d, d);
    out = static_cast<uint8_t>((plane * rows.kernel + rows.index_of(of.h, h)) * columns.kernel +
                               columns.index_of(of.w, w));
  }
  // Calls f(d, h, w) for the elements of the window at position p of y.
  template <class F>
  DPT_HOST_DEVICE void each_element(const Position& p, F f) const {
    const Range of_rows = rows.elements(p.h), of_columns = columns.elements(p.w);
    const Range of_planes = planes.elements(p.d);
    for (int64_t d = of_planes.first; d < of_planes.last; d += planes.dilation)
      for (int64_t h = of_rows.first; h < of_rows.last; h += rows.dilation)
        for (int64_t w = of_columns.first; w < of_columns.last; w += columns.dilation) f(d, h, w);
  }
  // Calls f(position in y) for the windows that contain the element at position p of x.
  template <class F>
  DPT_HOST_DEVICE void each_window(const Position& p, F f) const {
    const Range of_rows = rows.windows(p.h), of_columns = columns.windows(p.w);
    const Range of_planes = flat() ? Range{0, 1} : planes.windows(p.d);
    for (int64_t d = of_planes.first; d < of_planes.last; ++d)
      for (int64_t h = of_rows.first; h < of_rows.last; ++h)
        for (int64_t w = of_columns.first; w < of_columns.last; ++w)
          if ((flat() || planes.has(d, p.d)) && rows.has(h, p.h) && columns.has(w, p.w))
            f(Position{p.n, p.c, d, h, w});
  }
};

// P: the type of indices, int32_t or uint8_t.
template <class T, class P>
struct MaxPool {
  Windows s;
  const T* x;
  T* y;
  P* indices;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(x, s.x.elements());
    v.writes(y, count);
    v.writes(indices, count);
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    const Position p = position_of(s.y, i);
    float best = -INFINITY;
    int64_t plane = s.planes.elements(p.d).first, row = s.rows.elements(p.h).first,
            column = s.columns.elements(p.w).first;
    s.each_element(p, [&](int64_t d, int64_t h, int64_t w) {
      const float v = number(x[s.x.at(p.n, p.c, d, h, w)]);
      if (!(v > best || v != v)) return;
      best = v;
      plane = d, row = h, column = w;
    });
    put(y[i], best);
    s.index_of(indices[i], p, plane, row, column);
  }
};

// REQUIRES: indices inside their windows, as MaxPool writes them.
template <class T, class P>
struct MaxPoolGradient {
  Windows s;
  const T* dy;
  const P* indices;
  T* dx;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(dy, s.y.elements());
    v.reads(indices, s.y.elements());
    v.writes(dx, count);
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    const Position p = position_of(s.x, i);
    double sum = 0;
    s.each_window(p, [&](const Position& of) {
      P mine;
      s.index_of(mine, of, p.d, p.h, p.w);
      const int64_t at = s.y.at(of.n, of.c, of.d, of.h, of.w);
      if (indices[at] == mine) sum += static_cast<double>(number(dy[at]));
    });
    put(dx[i], sum);
  }
};

// The divisor of a window's sum.
struct MeanOf {
  bool with_padding;
  int64_t divisor_override;  // 0: none
  DPT_HOST_DEVICE double divisor(const Windows& s, const Position& p) const {
    if (divisor_override != 0) return static_cast<double>(divisor_override);
    if (with_padding)
      return static_cast<double>(s.planes.with_padding(p.d) * s.rows.with_padding(p.h) *
                                 s.columns.with_padding(p.w));
    const Range planes = s.planes.elements(p.d), rows = s.rows.elements(p.h),
                columns = s.columns.elements(p.w);
    return static_cast<double>((planes.last - planes.first) * (rows.last - rows.first) *
                               (columns.last - columns.first));
  }
};

template <class T>
struct MeanPool {
  Windows s;
  MeanOf mean;
  const T* x;
  T* y;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(x, s.x.elements());
    v.writes(y, count);
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    const Position p = position_of(s.y, i);
    const double by = mean.divisor(s, p);
    double sum = 0;
    s.each_element(p, [&](int64_t d, int64_t h, int64_t w) {
      sum += static_cast<double>(number(x[s.x.at(p.n, p.c, d, h, w)])) / by;
    });
    put(y[i], sum);
  }
};

template <class T>
struct MeanPoolGradient {
  Windows s;
  MeanOf mean;
  const T* dy;
  T* dx;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(dy, s.y.elements());
    v.writes(dx, count);
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    const Position p = position_of(s.x, i);
    double sum = 0;
    s.each_window(p, [&](const Position& of) {
      sum += static_cast<double>(number(dy[s.y.at(of.n, of.c, of.d, of.h, of.w)])) /
             mean.divisor(s, of);
    });
    put(dx[i], sum);
  }
};

// The source of each of `out` positions among `in` (graph/operators/images/upsample_nearest.cpp).
struct Nearest {
  int64_t in, out;
  float ratio;
  bool exact;
  DPT_HOST_DEVICE int64_t source(int64_t i) const {
    return formula::nearest_source(i, in, ratio, exact);
  }
  // A range that contains all positions whose source is i, and possibly others.
  DPT_HOST_DEVICE Range near(int64_t i) const {
    if (ratio == 1.0F && out == in) return {i, i + 1};
    if (ratio == 0.5F && out == 2 * in) return {2 * i, 2 * i + 2};
    const auto first = static_cast<int64_t>(static_cast<float>(i) / ratio);
    const auto last = static_cast<int64_t>(static_cast<float>(i + 1) / ratio);
    return {most(0, first - 2), i + 1 >= in ? out : least(out, last + 3)};
  }
};

// Each pixel of y is the pixel of x that Axis::source names for its plane, row and column.
template <class T, class Axis>
struct CopyPixels {
  ImageShape from, to;
  Axis planes, rows, columns;
  const T* x;
  T* y;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(x, from.elements());
    v.writes(y, count);
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    const Position p = position_of(to, i);
    y[i] = x[from.at(p.n, p.c, planes.source(p.d), rows.source(p.h), columns.source(p.w))];
  }
};

template <class T>
using Upsample = CopyPixels<T, Nearest>;

template <class T>
struct UpsampleGradient {
  ImageShape from, to;
  Nearest planes, rows, columns;
  const T* dy;
  T* dx;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(dy, to.elements());
    v.writes(dx, count);
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    const Position p = position_of(from, i);
    const Range d = planes.near(p.d), h = rows.near(p.h), w = columns.near(p.w);
    double sum = 0;
    for (int64_t q = d.first; q < d.last; ++q) {
      if (planes.source(q) != p.d) continue;
      for (int64_t r = h.first; r < h.last; ++r)
        for (int64_t c = w.first; c < w.last; ++c)
          if (rows.source(r) == p.h && columns.source(c) == p.w)
            sum += static_cast<double>(number(dy[to.at(p.n, p.c, q, r, c)]));
    }
    put(dx[i], sum);
  }
};

// Interpolation along one extent (graph/formulas/resample.h), linear with 2 taps, cubic with 4.
template <int kTaps>
struct Interpolated {
  int64_t in, out;
  float ratio;
  bool align_corners;
  DPT_HOST_DEVICE formula::Taps<kTaps> source(int64_t i) const {
    return formula::taps_of<kTaps>(i, in, out, ratio, align_corners);
  }
  // A range that contains all positions with source i, and possibly others.
  DPT_HOST_DEVICE Range near(int64_t i) const {
    if (kTaps == 2 && in == out) return {i, i + 1};
    if (!(ratio > 0)) return {0, out};
    constexpr int64_t kReach = kTaps / 2;
    const auto first = static_cast<int64_t>(static_cast<float>(i - kReach) / ratio);
    const auto last = static_cast<int64_t>(static_cast<float>(i + 1 + kReach) / ratio);
    return {i == 0 ? 0 : most(0, first - 3), i + 1 >= in ? out : least(out, last + 3)};
  }
  // How much of source i is in position p.
  DPT_HOST_DEVICE double share(int64_t p, int64_t i) const {
    const formula::Taps<kTaps> taps = source(p);
    double sum = 0;
    for (int k = 0; k < kTaps; ++k) sum += taps.at[k] == i ? taps.weight[k] : 0;
    return sum;
  }
};

template <class T, int kTaps>
struct Interpolate {
  ImageShape from, to;
  Interpolated<kTaps> planes, rows, columns;
  const T* x;
  T* y;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(x, from.elements());
    v.writes(y, count);
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    const Position p = position_of(to, i);
    const formula::Taps<kTaps> plane = planes.source(p.d), row = rows.source(p.h),
                               column = columns.source(p.w);
    double sum = 0;
    for (int q = 0; q < kTaps; ++q) {
      if (plane.weight[q] == 0) continue;  // all but one of an image's
      for (int r = 0; r < kTaps; ++r)
        for (int c = 0; c < kTaps; ++c)
          sum += plane.weight[q] * row.weight[r] * column.weight[c] *
                 static_cast<double>(
                     number(x[from.at(p.n, p.c, plane.at[q], row.at[r], column.at[c])]));
    }
    put(y[i], sum);
  }
};

template <class T, int kTaps>
struct InterpolateGradient {
  ImageShape from, to;
  Interpolated<kTaps> planes, rows, columns;
  const T* dy;
  T* dx;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(dy, to.elements());
    v.writes(dx, count);
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    const Position p = position_of(from, i);
    const Range d = planes.near(p.d), h = rows.near(p.h), w = columns.near(p.w);
    double sum = 0;
    for (int64_t q = d.first; q < d.last; ++q) {
      const double of_plane = planes.share(q, p.d);
      if (of_plane == 0) continue;
      for (int64_t r = h.first; r < h.last; ++r) {
        const double of_row = of_plane * rows.share(r, p.h);
        if (of_row == 0) continue;
        for (int64_t c = w.first; c < w.last; ++c)
          if (const double of_column = columns.share(c, p.w); of_column != 0)
            sum += of_row * of_column * static_cast<double>(number(dy[to.at(p.n, p.c, q, r, c)]));
      }
    }
    put(dx[i], sum);
  }
};

// The padding of one extent with copies of its own elements.
struct CopiedPadding {
  int64_t extent, before, behind;
  formula::PadFrom from;
  DPT_HOST_DEVICE int64_t source(int64_t position) const {
    return formula::pad_source(from, position - before, extent);
  }
  // Calls f(position) for the positions of element i and of its copies.
  template <class F>
  DPT_HOST_DEVICE void each_copy(int64_t i, F f) const {
    for (int64_t p = 0; p < before; ++p)
      if (source(p) == i) f(p);
    f(i + before);
    for (int64_t p = before + extent; p < before + extent + behind; ++p)
      if (source(p) == i) f(p);
  }
};

template <class T>
using PadInside = CopyPixels<T, CopiedPadding>;

template <class T>
struct PadInsideGradient {
  ImageShape from, to;
  CopiedPadding planes, rows, columns;
  const T* dy;
  T* dx;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(dy, to.elements());
    v.writes(dx, count);
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    const Position p = position_of(from, i);
    double sum = 0;
    planes.each_copy(p.d, [&](int64_t d) {
      rows.each_copy(p.h, [&](int64_t h) {
        columns.each_copy(p.w, [&](int64_t w) {
          sum += static_cast<double>(number(dy[to.at(p.n, p.c, d, h, w)]));
        });
      });
    });
    put(dx[i], sum);
  }
};

using ImageKernels = KernelList<
    MaxPool<float, int32_t>, MaxPoolGradient<float, int32_t>, MaxPool<float, uint8_t>,
    MaxPoolGradient<float, uint8_t>, MeanPool<float>, MeanPoolGradient<float>, Upsample<float>,
    UpsampleGradient<float>, MaxPool<Bf16, int32_t>, MaxPoolGradient<Bf16, int32_t>,
    MaxPool<Bf16, uint8_t>, MaxPoolGradient<Bf16, uint8_t>, MeanPool<Bf16>, MeanPoolGradient<Bf16>,
    Upsample<Bf16>, UpsampleGradient<Bf16>, MaxPool<F16, int32_t>, MaxPoolGradient<F16, int32_t>,
    MaxPool<F16, uint8_t>, MaxPoolGradient<F16, uint8_t>, MeanPool<F16>, MeanPoolGradient<F16>,
    Upsample<F16>, UpsampleGradient<F16>, Interpolate<float, 2>, Interpolate<Bf16, 2>,
    Interpolate<F16, 2>, InterpolateGradient<float, 2>, InterpolateGradient<Bf16, 2>,
    InterpolateGradient<F16, 2>, Interpolate<float, 4>, Interpolate<Bf16, 4>, Interpolate<F16, 4>,
    InterpolateGradient<float, 4>, InterpolateGradient<Bf16, 4>, InterpolateGradient<F16, 4>,
    PadInside<float>, PadInside<Bf16>, PadInside<F16>, PadInsideGradient<float>,
    PadInsideGradient<Bf16>, PadInsideGradient<F16>>;

}  // namespace dpt::cuda
