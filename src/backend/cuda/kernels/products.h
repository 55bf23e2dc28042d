// Matrix products and convolutions without a library. Products are computed in tiles and summed in
// double in the order of k, so they have the bits of the reference implementation. They are slow
// and only used if cuBLASLt or cuDNN refuse.
#pragma once

#include "backend/cuda/kernels/block.h"
#include "backend/cuda/kernels/images.h"
#include "backend/cuda/kernels/number.h"
#include "backend/cuda/kernels/own_kernel.h"

namespace dpt::cuda {

// y [rows, columns] = the sum over k of a(row, k) * b(k, column), + bias [columns] if not null.
// a_row, a_k, b_k, b_column: distances of neighbors. A block computes a 16 x 16 tile of y.
template <class T, class To>
struct Product {
  static constexpr int kSide = 16, kThreads = kSide * kSide;
  const T *a, *b;
  const T* bias;
  To* y;
  int64_t rows, columns, depth;
  int64_t a_row, a_k, b_k, b_column;
  struct Shared {
    float a[kSide][kSide + 1], b[kSide][kSide + 1];
  };
  DPT_HOST_DEVICE int64_t across() const { return (columns + kSide - 1) / kSide; }
  int64_t blocks() const { return (rows + kSide - 1) / kSide * across(); }
  template <class Visitor>
  void touches(Visitor& v, int64_t) const {
    v.reads(a, rows * depth);
    v.reads(b, depth * columns);
    if (bias) v.reads(bias, columns);
    v.writes(y, rows * columns);
  }
  template <class Block>
  DPT_HOST_DEVICE void operator()(Block& block) const {
    const int64_t top = block.index() / across() * kSide, left = block.index() % across() * kSide;
    auto sum = block.template per_thread<double>();
    block.phase([&](int t, Shared&) {
      const int64_t column = left + t % kSide;
      sum[t] = bias && column < columns ? static_cast<double>(number(bias[column])) : 0;
    });
    for (int64_t begin = 0; begin < depth; begin += kSide) {
      block.phase([&](int t, Shared& s) {
        const int i = t / kSide, j = t % kSide;
        const bool has_a = top + i < rows && begin + j < depth;
        const bool has_b = begin + i < depth && left + j < columns;
        s.a[i][j] = has_a ? number(a[(top + i) * a_row + (begin + j) * a_k]) : 0.0F;
        s.b[i][j] = has_b ? number(b[(begin + i) * b_k + (left + j) * b_column]) : 0.0F;
      });
      const int64_t left_over = depth - begin;
      const int deep = left_over < kSide ? static_cast<int>(left_over) : kSide;
      block.phase([&](int t, Shared& s) {
        for (int k = 0; k < deep; ++k)
          sum[t] += static_cast<double>(s.a[t / kSide][k]) * static_cast<double>(s.b[k][t % kSide]);
      });
    }
    block.phase([&](int t, Shared&) {
      const int64_t row = top + t / kSide, column = left + t % kSide;
      if (row < rows && column < columns) put(y[row * columns + column], sum[t]);
    });
  }
};

// A convolution of x [N, C, D, H, W] with w [O, C / groups, kd, kh, kw] to y [N, O, D', H', W'], in
// any layout.
struct ConvolutionShape {
  ImageShape x, w, y;  // for w: n is O, c is C / groups
  int64_t groups;
  int64_t stride[3], dilation[3], before[3];
  DPT_HOST_DEVICE int64_t outputs() const { return y.c / groups; }  // output channels of one group
  // The position in x that position i of y and position k of w read; < 0 or too large: padding.
  DPT_HOST_DEVICE int64_t source(int d, int64_t i, int64_t k) const {
    return i * stride[d] - before[d] + k * dilation[d];
  }
  // The position in y that reads position i of x at position k of w, or -1.
  DPT_HOST_DEVICE int64_t target(int d, int64_t i, int64_t k) const {
    const int64_t from = i + before[d] - k * dilation[d];
    return from < 0 || from % stride[d] != 0 ? -1 : from / stride[d];
  }
  // Calls f(plane, row, column) for the positions of w.
  template <class F>
  DPT_HOST_DEVICE void each_tap(F f) const {
    for (int64_t d = 0; d < w.d; ++d)
      for (int64_t h = 0; h < w.h; ++h)
        for (int64_t v = 0; v < w.w; ++v) f(d, h, v);
  }
};
DPT_FORMULA bool outside(const ImageShape& s, int64_t d, int64_t h, int64_t w) {
  return d < 0 || d >= s.d || h < 0 || h >= s.h || w < 0 || w >= s.w;
}

// y = convolution of x and w, + bias [O] if not null.
template <class T>
struct Convolve {
  ConvolutionShape s;
  const T *x, *w;
  const T* bias;
  T* y;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(x, s.x.elements());
    v.reads(w, s.w.elements());
    if (bias) v.reads(bias, s.y.c);
    v.writes(y, count);
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    const Position p = position_of(s.y, i);
    const int64_t channel = p.c / s.outputs() * s.w.c;
    double sum = bias ? static_cast<double>(number(bias[p.c])) : 0;
    s.each_tap([&](int64_t kd, int64_t kh, int64_t kw) {
      const int64_t id = s.source(0, p.d, kd), ih = s.source(1, p.h, kh), iw = s.source(2, p.w, kw);
      if (outside(s.x, id, ih, iw)) return;
      for (int64_t c = 0; c < s.w.c; ++c)
        sum += static_cast<double>(number(x[s.x.at(p.n, channel + c, id, ih, iw)])) *
               static_cast<double>(number(w[s.w.at(p.c, c, kd, kh, kw)]));
    });
    put(y[i], sum);
  }
};

// dx from dy and w, + bias [C] if not null: convolution_transpose, and the input gradient.
template <class T>
struct ConvolveBack {
  ConvolutionShape s;
  const T *dy, *w;
  const T* bias;
  T* dx;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(dy, s.y.elements());
    v.reads(w, s.w.elements());
    if (bias) v.reads(bias, s.x.c);
    v.writes(dx, count);
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    const Position p = position_of(s.x, i);
    const int64_t group = p.c / s.w.c, c = p.c % s.w.c, first = group * s.outputs();
    double sum = bias ? static_cast<double>(number(bias[p.c])) : 0;
    s.each_tap([&](int64_t kd, int64_t kh, int64_t kw) {
      const int64_t od = s.target(0, p.d, kd), oh = s.target(1, p.h, kh), ow = s.target(2, p.w, kw);
      if (outside(s.y, od, oh, ow)) return;
      for (int64_t o = first; o < first + s.outputs(); ++o)
        sum += static_cast<double>(number(dy[s.y.at(p.n, o, od, oh, ow)])) *
               static_cast<double>(number(w[s.w.at(o, c, kd, kh, kw)]));
    });
    put(dx[i], sum);
  }
};

// dw from dy and x. A block computes one element of dw.
template <class T>
struct ConvolveWeight {
  static constexpr int kThreads = 128;
  ConvolutionShape s;
  const T *dy, *x;
  float* dw;
  struct Shared {
    double sum[kThreads];
  };
  template <class Visitor>
  void touches(Visitor& v, int64_t) const {
    v.reads(dy, s.y.elements());
    v.reads(x, s.x.elements());
    v.writes(dw, s.w.elements());
  }
  template <class Block>
  DPT_HOST_DEVICE void operator()(Block& block) const {
    const Position k = position_of(s.w, block.index());
    const int64_t channel = k.n / s.outputs() * s.w.c + k.c, rows = s.y.d * s.y.h;
    const int64_t positions = s.y.n * rows * s.y.w;
    block.phase([&](int t, Shared& shared) {
      double sum = 0;
      for (int64_t i = t; i < positions; i += kThreads) {
        const int64_t n = i / (rows * s.y.w), row = i / s.y.w % rows, yw = i % s.y.w;
        const int64_t yd = s.y.d == 1 ? 0 : row / s.y.h, yh = row - yd * s.y.h;
        const int64_t d = s.source(0, yd, k.d), h = s.source(1, yh, k.h), w = s.source(2, yw, k.w);
        if (outside(s.x, d, h, w)) continue;
        sum += static_cast<double>(number(x[s.x.at(n, channel, d, h, w)])) *
               static_cast<double>(number(dy[s.y.at(n, k.n, yd, yh, yw)]));
      }
      shared.sum[t] = sum;
    });
    for (int half = kThreads / 2; half > 0; half /= 2)
      block.phase([&](int t, Shared& shared) {
        if (t < half) shared.sum[t] += shared.sum[t + half];
      });
    block.phase([&](int t, Shared& shared) {
      if (t == 0) put(dw[block.index()], shared.sum[0]);
    });
  }
};

using ProductKernels =
    KernelList<Product<float, float>, Product<Bf16, Bf16>, Product<F16, F16>, Product<Bf16, float>,
               Product<F16, float>, Convolve<float>, Convolve<Bf16>, Convolve<F16>,
               ConvolveBack<float>, ConvolveBack<Bf16>, ConvolveBack<F16>, ConvolveWeight<float>,
               ConvolveWeight<Bf16>, ConvolveWeight<F16>>;

}  // namespace dpt::cuda
