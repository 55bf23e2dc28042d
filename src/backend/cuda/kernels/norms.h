// Batch normalization and its fused forms, and norms of rows. Statistics are in double. Formulas:
// graph/operators/norms/batch_norm.cpp, row_norm.cpp.
#pragma once

#include "backend/cuda/kernels/running_statistics.h"
#include "backend/cuda/kernels/sums.h"
#include "graph/formulas/activation.h"
#include "graph/formulas/norm_rows.h"

namespace dpt::cuda {

// (x - mean[c]) * rstd[c] * w[c] + b[c] in double. w, b: null: 1, 0.
template <class T>
struct Normalisation {
  const double* moments;  // [2 C]: means, then 1 / standard deviation
  const float *w, *b;
  int64_t channels;
  template <class Visitor>
  void touches(Visitor& v) const {
    v.reads(moments, 2 * channels);
    if (w) v.reads(w, channels);
    if (b) v.reads(b, channels);
  }
  DPT_HOST_DEVICE double rstd(int64_t c) const { return moments[channels + c]; }
  DPT_HOST_DEVICE double weight(int64_t c) const { return w ? static_cast<double>(w[c]) : 1; }
  DPT_HOST_DEVICE double normalised(T x, int64_t c) const {
    return (static_cast<double>(number(x)) - moments[c]) * rstd(c);
  }
  // Rounded once, to float.
  DPT_HOST_DEVICE float of(T x, int64_t c) const {
    return static_cast<float>(normalised(x, c) * weight(c) + (b ? static_cast<double>(b[c]) : 0));
  }
};

// Sums of x and x^2 by channel.
template <class T>
struct MomentTerms {
  static constexpr int kTerms = 2;
  Rows at;
  const T* x;
  template <class Visitor>
  void touches(Visitor& v) const {
    v.reads(x, at.elements);
  }
  DPT_HOST_DEVICE void operator()(int64_t row, int64_t column, double (&term)[2]) const {
    const double v = static_cast<double>(number(x[at.at(row, column)]));
    term[0] = v;
    term[1] = v * v;
  }
};

// Sums of dy and dy * normalized x by channel. relu: dy is first multiplied by relu's gradient.
template <class T>
struct GradientTerms {
  static constexpr int kTerms = 2;
  Rows at;
  Normalisation<T> n;
  const T *dy, *x;
  bool relu;
  template <class Visitor>
  void touches(Visitor& v) const {
    n.touches(v);
    v.reads(dy, at.elements);
    v.reads(x, at.elements);
  }
  DPT_HOST_DEVICE void operator()(int64_t row, int64_t c, double (&term)[2]) const {
    const int64_t i = at.at(row, c);
    const float d = relu ? formula::relu_gradient(n.of(x[i], c), number(dy[i])) : number(dy[i]);
    term[0] = static_cast<double>(d);
    term[1] = static_cast<double>(d) * n.normalised(x[i], c);
  }
};

// The same for dr = relu's gradient of dy (+ dy2) by y. Also writes dr.
template <class T>
struct ResidualTerms {
  static constexpr int kTerms = 2;
  Rows at;
  Normalisation<T> n;
  const T *y, *x, *dy, *dy2;
  T* dr;
  template <class Visitor>
  void touches(Visitor& v) const {
    n.touches(v);
    for (const T* in : {y, x, dy, dy2})
      if (in) v.reads(in, at.elements);
    v.writes(dr, at.elements);
  }
  DPT_HOST_DEVICE void operator()(int64_t row, int64_t c, double (&term)[2]) const {
    const int64_t i = at.at(row, c);
    const float up = dy2 ? number(dy[i]) + number(dy2[i]) : number(dy[i]);
    put(dr[i], formula::relu_gradient(number(y[i]), up));
    const double d = static_cast<double>(number(dr[i]));
    term[0] = d;
    term[1] = d * n.normalised(x[i], c);
  }
};

struct Moments {
  const double* sums;
  double* out;
  double eps;
  int64_t channels;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(sums, 2 * count + 1);
    v.writes(out, 2 * count);
  }
  DPT_HOST_DEVICE void operator()(int64_t c) const {
    const MeanAndVariance m = moments_of(sums, channels, c);
    out[c] = m.mean;
    out[channels + c] = 1 / ::sqrt(m.variance + eps);
  }
};

// Converts cuDNN's mean and 1 / deviation to moments and, if `sums` is not null, to the sums that
// have these moments.
struct SavedMoments {
  const float *mean, *rstd;
  double *moments, *sums;
  double eps, elements;
  int64_t channels;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(mean, count);
    v.reads(rstd, count);
    v.writes(moments, 2 * count);
    if (sums) v.writes(sums, 2 * count + 1);
  }
  DPT_HOST_DEVICE void operator()(int64_t c) const {
    const double m = static_cast<double>(mean[c]), r = static_cast<double>(rstd[c]);
    moments[c] = m;
    moments[channels + c] = r;
    if (!sums) return;
    const double variance = 1 / (r * r) - eps;
    sums[c] = m * elements;
    sums[channels + c] = ((variance > 0 ? variance : 0) + m * m) * elements;
    if (c == 0) sums[2 * channels] = elements;
  }
};

// Converts moments to cuDNN's form: means, then 1 / deviation, in f32.
struct SingleMoments {
  const double* moments;
  float* single;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(moments, count);
    v.writes(single, count);
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const { single[i] = static_cast<float>(moments[i]); }
};

// y = batch norm of x, + r if it is not null, then relu if `relu`.
template <class T>
struct Normalise {
  Rows at_rows;
  Normalisation<T> n;
  const T *x, *r;
  T* y;
  bool relu;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    n.touches(v);
    v.reads(x, count);
    if (r) v.reads(r, count);
    v.writes(y, count);
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    float v = n.of(x[i], at_rows.column(i));
    if (r) {
      T between;
      put(between, v);
      v = number(between) + number(r[i]);
    }
    put(y[i], relu ? formula::relu(v) : v);
  }
};

// dx = rstd * w * (d - mean(d) - h * mean(d * h)) with h the normalized x; without the means if
// `sums` is null. d: dy, or relu's gradient of it.
template <class T>
struct NormaliseGradient {
  Rows at_rows;
  Normalisation<T> n;
  const T *dy, *x;
  const double* sums;
  T* dx;
  bool relu;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    n.touches(v);
    v.reads(dy, count);
    v.reads(x, count);
    if (sums) v.reads(sums, 2 * n.channels + 1);
    v.writes(dx, count);
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t c = at_rows.column(i), channels = n.channels;
    float up = number(dy[i]);
    if (relu) up = formula::relu_gradient(n.of(x[i], c), up);
    double d = static_cast<double>(up);
    if (sums) d -= (sums[c] + n.normalised(x[i], c) * sums[channels + c]) / sums[2 * channels];
    put(dx[i], d * n.rstd(c) * n.weight(c));
  }
};

// Writes dw and db from the sums.
struct AffineGradient {
  const double* sums;
  float *dw, *db;
  int64_t channels;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(sums, 2 * count);
    v.writes(dw, count);
    v.writes(db, count);
  }
  DPT_HOST_DEVICE void operator()(int64_t c) const {
    put(db[c], sums[c]);
    put(dw[c], sums[channels + c]);
  }
};

// Norms of rows; a block computes one row. RMS norm, which subtracts no mean, has no `mean`.
template <class T>
struct RowNormalise {
  static constexpr int kThreads = 256;
  formula::NormRows g;
  const T* x;
  const float *w, *b;
  T* y;
  float *mean, *rstd;
  double eps;
  struct Shared {
    double sum[kThreads], mean, rstd;
  };
  template <class Visitor>
  void touches(Visitor& v, int64_t) const {
    v.reads(x, elements_of(g));
    if (w) v.reads(w, weights_of(g));
    if (b) v.reads(b, weights_of(g));
    v.writes(y, elements_of(g));
    if (mean) v.writes(mean, rows_of(g));
    v.writes(rstd, rows_of(g));
  }
  template <class Block>
  DPT_HOST_DEVICE void operator()(Block& block) const {
    const int64_t r = block.index(), width = width_of(g);
    const auto value = [&](int64_t e) { return static_cast<double>(number(x[index_of(g, r, e)])); };
    block.phase([&](int t, Shared& s) {
      s.sum[t] = 0;
      for (int64_t e = t; e < width; e += kThreads) s.sum[t] += value(e);
    });
    combine<kThreads>(block, [](Shared& s) { return s.sum; });
    block.phase([&](int t, Shared& s) {
      if (t == 0) s.mean = mean ? s.sum[0] / static_cast<double>(width) : 0;
    });
    block.phase([&](int t, Shared& s) {
      s.sum[t] = 0;
      for (int64_t e = t; e < width; e += kThreads)
        s.sum[t] += (value(e) - s.mean) * (value(e) - s.mean);
    });
    combine<kThreads>(block, [](Shared& s) { return s.sum; });
    block.phase([&](int t, Shared& s) {
      if (t != 0) return;
      s.rstd = 1 / ::sqrt(s.sum[0] / static_cast<double>(width) + eps);
      if (mean) put(mean[r], s.mean);
      put(rstd[r], s.rstd);
    });
    block.phase([&](int t, Shared& s) {
      for (int64_t e = t; e < width; e += kThreads) {
        const int64_t c = channel_of(g, r, e);
        put(y[index_of(g, r, e)],
            (value(e) - s.mean) * s.rstd * (w ? static_cast<double>(w[c]) : 1) +
                (b ? static_cast<double>(b[c]) : 0));
      }
    });
  }
};

// dx = rstd * (g - mean(g) - h * mean(g * h)) with g = dy * w and h the normalized x. Without
// `mean` (RMS norm): rstd * (g - h * mean(g * h)).
template <class T>
struct RowNormGradient {
  static constexpr int kThreads = 256;
  formula::NormRows g;
  const T *dy, *x;
  const float *mean, *rstd, *w;
  T* dx;
  struct Shared {
    double sum[kThreads], along[kThreads];
  };
  template <class Visitor>
  void touches(Visitor& v, int64_t) const {
    v.reads(dy, elements_of(g));
    v.reads(x, elements_of(g));
    if (mean) v.reads(mean, rows_of(g));
    v.reads(rstd, rows_of(g));
    if (w) v.reads(w, weights_of(g));
    v.writes(dx, elements_of(g));
  }
  template <class Block>
  DPT_HOST_DEVICE void operator()(Block& block) const {
    const int64_t r = block.index(), width = width_of(g);
    const double m = mean ? static_cast<double>(mean[r]) : 0, rs = static_cast<double>(rstd[r]);
    const auto up = [&](int64_t e) {
      return static_cast<double>(number(dy[index_of(g, r, e)])) *
             (w ? static_cast<double>(w[channel_of(g, r, e)]) : 1);
    };
    const auto h = [&](int64_t e) {
      return (static_cast<double>(number(x[index_of(g, r, e)])) - m) * rs;
    };
    block.phase([&](int t, Shared& s) {
      s.sum[t] = s.along[t] = 0;
      for (int64_t e = t; e < width; e += kThreads) {
        s.sum[t] += up(e);
        s.along[t] += up(e) * h(e);
      }
    });
    combine<kThreads>(block, [](Shared& s) { return s.sum; });
    combine<kThreads>(block, [](Shared& s) { return s.along; });
    block.phase([&](int t, Shared& s) {
      const double n = static_cast<double>(width), shift = mean ? s.sum[0] / n : 0;
      for (int64_t e = t; e < width; e += kThreads)
        put(dx[index_of(g, r, e)], rs * (up(e) - shift - h(e) * s.along[0] / n));
    });
  }
};

// Sums of dy * normalized x and, with kCenter, of dy by channel, over samples and positions.
template <class T, bool kCenter>
struct RowNormWeightTerms {
  static constexpr int kTerms = kCenter ? 2 : 1;
  formula::NormRows g;
  const T *dy, *x;
  const float *mean, *rstd;
  template <class Visitor>
  void touches(Visitor& v) const {
    v.reads(dy, elements_of(g));
    v.reads(x, elements_of(g));
    if (mean) v.reads(mean, rows_of(g));
    v.reads(rstd, rows_of(g));
  }
  // row: sample * positions + position.
  DPT_HOST_DEVICE void operator()(int64_t row, int64_t c, double (&term)[kTerms]) const {
    const int64_t sample = row / g.positions, position = row % g.positions;
    const int64_t i =
        g.last ? row * weights_of(g) + c : (sample * weights_of(g) + c) * g.positions + position;
    const int64_t r = sample * g.groups + c / g.channels;
    const double d = static_cast<double>(number(dy[i]));
    const double m = kCenter ? static_cast<double>(mean[r]) : 0;
    term[0] = d * (static_cast<double>(number(x[i])) - m) * static_cast<double>(rstd[r]);
    if constexpr (kCenter) term[1] = d;
  }
};

using NormKernels = KernelList<
    Moments, SavedMoments, SingleMoments, RunningMoments, UpdateRunning, DeferRunning,
    AffineGradient, ColumnSums<MomentTerms<float>>, ColumnSums<MomentTerms<Bf16>>,
    ColumnSums<MomentTerms<F16>>, ColumnSums<GradientTerms<float>>, ColumnSums<GradientTerms<Bf16>>,
    ColumnSums<GradientTerms<F16>>, ColumnSums<ResidualTerms<float>>,
    ColumnSums<ResidualTerms<Bf16>>, ColumnSums<ResidualTerms<F16>>, Normalise<float>,
    Normalise<Bf16>, Normalise<F16>, NormaliseGradient<float>, NormaliseGradient<Bf16>,
    NormaliseGradient<F16>, RowNormalise<float>, RowNormGradient<float>,
    ColumnSums<RowNormWeightTerms<float, true>>, ColumnSums<RowNormWeightTerms<float, false>>>;

}  // namespace dpt::cuda
