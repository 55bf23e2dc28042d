// Norms of the rows of x [rows, columns], and their gradients. kCenter: rows have a mean that is
// subtracted, as in layer norm; else it is 0, as in RMS norm.
#include "backend/cpu/simd/elementwise.h"
#include "backend/cpu/simd/lanes.h"

namespace dpt::DPT_ISA {
namespace {

// Sums along a row are in single precision for this many columns; the sums of these are added in
// double, so that errors do not grow with the width of the row.
constexpr size_t kChunk = 1024;

struct RowSums {
  double first = 0, second = 0;
};

// Calls f(i, access, first sum, second sum) for each vector of a row.
template <class F>
DPT_SIMD RowSums sum_row(size_t columns, F f) {
  RowSums all;
  for (size_t begin = 0; begin < columns; begin += kChunk) {
    Lanes first = zero(), second = zero();
    each_vector(
        columns - begin < kChunk ? columns - begin : kChunk, [&](size_t i, auto at)
                                                                 __attribute__((always_inline)) {
                                                                   f(begin + i, at, first, second);
                                                                 });
    all.first += double{sum_of(first)};
    all.second += double{sum_of(second)};
  }
  return all;
}

DPT_SIMD float average(double sum, size_t columns) {
  return static_cast<float>(sum / static_cast<double>(columns));
}

template <bool kCenter>
DPT_SIMD void normalise(const RowNormArgs& a) {
  const float *x = a.x, *w = a.w, *b = a.b;
  float* y = a.y;
  for (size_t r = 0; r < a.rows; ++r, x += a.columns, y += a.columns) {
    Lanes m = zero();
    if constexpr (kCenter) {
      const RowSums sum = sum_row(
          a.columns, [&](size_t i, auto at, Lanes& s, Lanes&)
                         __attribute__((always_inline)) { s += at.get(x + i); });
      a.mean[r] = average(sum.first, a.columns);
      m = all(a.mean[r]);
    }
    const auto centered = [&](size_t i, auto at) __attribute__((always_inline)) {
      if constexpr (kCenter) return at.get(x + i) - m;
      return at.get(x + i);
    };
    const RowSums squares = sum_row(
        a.columns, [&](size_t i, auto at, Lanes& s, Lanes&) __attribute__((always_inline)) {
          const Lanes d = centered(i, at);
          // Lanes behind the end would add (0 - mean)^2.
          s += kCenter ? select(at.or_lowest(zero()) < Lanes(0), Lanes(0), d * d) : d * d;
        });
    a.rstd[r] = 1 / __builtin_sqrtf(average(squares.first, a.columns) + a.eps);
    const Lanes s = all(a.rstd[r]);
    each_vector(
        a.columns, [&](size_t i, auto at) __attribute__((always_inline)) {
          const Lanes h = centered(i, at) * s;
          const Lanes weighted = w == nullptr ? h : h * at.get(w + i);
          at.put(y + i, b == nullptr ? weighted : weighted + at.get(b + i));
        });
  }
}

// dx = rstd * (g - mean(g) - h * mean(g * h)) with g = dy * w and h the normalized x; without
// kCenter mean(g) is 0.
template <bool kCenter>
DPT_SIMD void input_gradient(const RowNormGradient& a, float* dx) {
  const float *dy = a.dy, *x = a.x, *w = a.w;
  for (size_t r = 0; r < a.rows; ++r, dy += a.columns, x += a.columns, dx += a.columns) {
    const Lanes m = kCenter ? all(a.mean[r]) : zero(), s = all(a.rstd[r]);
    const auto up = [&](size_t i, auto at) __attribute__((always_inline)) {
      return w == nullptr ? at.get(dy + i) : at.get(dy + i) * at.get(w + i);
    };
    const auto normal = [&](size_t i, auto at) __attribute__((always_inline)) {
      return (kCenter ? at.get(x + i) - m : at.get(x + i)) * s;
    };
    const RowSums sums = sum_row(
        a.columns, [&](size_t i, auto at, Lanes& sum, Lanes& along) __attribute__((always_inline)) {
          const Lanes g = up(i, at);
          if (kCenter) sum += g;
          along += g * normal(i, at);
        });
    const Lanes mean_g = all(average(sums.first, a.columns));
    const Lanes mean_gh = all(average(sums.second, a.columns));
    each_vector(
        a.columns, [&](size_t i, auto at) __attribute__((always_inline)) {
          const Lanes g = kCenter ? up(i, at) - mean_g : up(i, at);
          at.put(dx + i, s * (g - normal(i, at) * mean_gh));
        });
  }
}

// Each vector of columns is summed down all rows.
template <bool kCenter>
DPT_SIMD void weight_gradient(const RowNormGradient& a, float* dw, float* db) {
  each_vector(
      a.columns, [&](size_t i, auto at) __attribute__((always_inline)) {
        Lanes sum = zero(), along = zero();
        for (size_t r = 0; r < a.rows; ++r) {
          const Lanes d = at.get(a.dy + r * a.columns + i);
          const Lanes v = at.get(a.x + r * a.columns + i);
          const Lanes s = all(a.rstd[r]);
          if constexpr (kCenter) {
            sum += d;
            along += d * ((v - Lanes(all(a.mean[r]))) * s);
          } else {
            along += d * (v * s);
          }
        }
        at.put(dw + i, along);
        if (kCenter) at.put(db + i, sum);
      });
}

void row_norm(const RowNormArgs& a) {
  a.mean == nullptr ? normalise<false>(a) : normalise<true>(a);
}

void row_norm_input_gradient(const RowNormGradient& a, float* dx) {
  a.mean == nullptr ? input_gradient<false>(a, dx) : input_gradient<true>(a, dx);
}

void row_norm_weight_gradient(const RowNormGradient& a, float* dw, float* db) {
  a.mean == nullptr ? weight_gradient<false>(a, dw, db) : weight_gradient<true>(a, dw, db);
}

}  // namespace

void add_row_norm(ElementwiseKernels& kernels) {
  kernels.row_norm = row_norm;
  kernels.row_norm_input_gradient = row_norm_input_gradient;
  kernels.row_norm_weight_gradient = row_norm_weight_gradient;
}

}  // namespace dpt::DPT_ISA
