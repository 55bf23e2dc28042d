// Softmax, log_softmax and cross entropy along the rows of a matrix. A row that is shorter than a
// vector (ten classes, say) is one vector whose last lanes are -inf.
#include "backend/cpu/simd/class_terms.h"

namespace dpt::DPT_ISA {
namespace {

// Sum of exp(x - top). Lanes behind the end are exp(-inf) = 0.
DPT_SIMD float exp_sum(const float* x, size_t n, Lanes top) {
  Lanes sum = zero();
  each_vector(
      n, [&](size_t i, auto at)
             __attribute__((always_inline)) { sum += exp(at.or_lowest(at.get(x + i)) - top); });
  return sum_of(sum);
}

// Rows whose logarithms are computed together, since one logarithm costs as much as a vector of
// them.
constexpr size_t kRows = 16;
struct RowSums {
  float top[kRows], log_sum[kRows], sum[kRows];
};

DPT_SIMD void sums_of_rows(const float* x, size_t rows, size_t columns, RowSums& s) {
  for (size_t r = 0; r < kRows; ++r) s.sum[r] = 1;
  for (size_t r = 0; r < rows; ++r) {
    s.top[r] = top_of(x + r * columns, columns);
    s.sum[r] = exp_sum(x + r * columns, columns, all(s.top[r]));
  }
  for (size_t r = 0; r < kRows; r += kLanes) store(s.log_sum + r, log(load(s.sum + r)).v);
}

// Calls f(first row, count, sums) for blocks of rows.
template <class F>
DPT_SIMD void each_block(const float* x, size_t rows, size_t columns, F f) {
  for (size_t r = 0; r < rows; r += kRows) {
    RowSums s;
    const size_t count = rows - r < kRows ? rows - r : kRows;
    sums_of_rows(x + r * columns, count, columns, s);
    f(r, count, s);
  }
}

void log_softmax(const float* x, float* y, size_t rows, size_t columns) {
  each_block(x, rows, columns, [&](size_t first, size_t count, const RowSums& s) {
    for (size_t r = 0; r < count; ++r) {
      const Lanes top = all(s.top[r]), log_sum = all(s.log_sum[r]);
      const size_t row = (first + r) * columns;
      each_vector(
          columns, [&](size_t i, auto at) __attribute__((always_inline)) {
            at.put(y + row + i, at.get(x + row + i) - top - log_sum);
          });
    }
  });
}

void log_softmax_gradient(const float* y, const float* dy, float* dx, size_t rows, size_t columns) {
  for (size_t r = 0; r < rows; ++r, y += columns, dy += columns, dx += columns) {
    const Lanes sum = all(plain_sum(dy, columns));
    each_vector(
        columns, [&](size_t i, auto at) __attribute__((always_inline)) {
          at.put(dx + i, at.get(dy + i) - exp(at.get(y + i)) * sum);
        });
  }
}

void softmax(const float* x, float* y, size_t rows, size_t columns) {
  for (size_t r = 0; r < rows; ++r, x += columns, y += columns) {
    const Lanes top = all(top_of(x, columns));
    Lanes sum = zero();
    each_vector(
        columns, [&](size_t i, auto at) __attribute__((always_inline)) {
          const Lanes e = exp(at.or_lowest(at.get(x + i)) - top);
          at.put(y + i, e);
          sum += e;
        });
    const Lanes factor = all(1 / sum_of(sum));
    each_vector(
        columns, [&](size_t i, auto at)
                     __attribute__((always_inline)) { at.put(y + i, at.get(y + i) * factor); });
  }
}

void softmax_gradient(const float* y, const float* dy, float* dx, size_t rows, size_t columns) {
  for (size_t r = 0; r < rows; ++r, y += columns, dy += columns, dx += columns) {
    Lanes along = zero();
    each_vector(
        columns, [&](size_t i, auto at) __attribute__((always_inline)) {
          along = madd(at.get(y + i), at.get(dy + i), along);
        });
    const Lanes sum = all(sum_of(along));
    each_vector(
        columns, [&](size_t i, auto at) __attribute__((always_inline)) {
          at.put(dx + i, at.get(y + i) * (at.get(dy + i) - sum));
        });
  }
}

// Calls f(i, access, weights) for each vector of a row's classes.
template <class F>
DPT_SIMD void each_class(const ClassLossArgs& a, F f) {
  each_vector(
      a.c, [&](size_t i, auto at) __attribute__((always_inline)) {
        f(i, at, a.weight == nullptr ? Lanes(1) : at.get(a.weight + i));
      });
}

// The sum of the terms of row r, of classes or of probabilities.
DPT_SIMD float row_term(const ClassLossArgs& a, size_t r, float row_top, float log_sum,
                        float all_weights) {
  const float* x = a.x + r * a.c;
  const Lanes top = all(row_top);
  Lanes sum = zero();
  if (a.probabilities != nullptr) {
    const float* p = a.probabilities + r * a.c;
    each_class(
        a, [&](size_t i, auto at, Lanes weight) __attribute__((always_inline)) {
          const Lanes q = probable(a, weight, at.get(p + i));
          const Lanes term = probable_term(q, all(log_sum), at.get(x + i) - top);
          sum += select(at.or_lowest(zero()) < Lanes(0), Lanes(0), term);
        });
    return sum_of(sum);
  }
  const int32_t y = a.target[r];
  if (y == a.ignore) return 0;
  if (a.smoothing != 0)
    each_class(
        a, [&](size_t i, auto at, Lanes weight) __attribute__((always_inline)) {
          sum += select(at.or_lowest(zero()) < Lanes(0), Lanes(0), weight * (at.get(x + i) - top));
        });
  return class_term(a, y, x[y] - row_top, log_sum, all_weights, sum_of(sum));
}

double cross_entropy(const ClassLossArgs& a) {
  const float all_weights = total_weight(a);
  double sum = 0;
  each_block(a.x, a.n, a.c, [&](size_t first, size_t count, const RowSums& s) {
    for (size_t r = 0; r < count; ++r)
      sum += static_cast<double>(row_term(a, first + r, s.top[r], s.log_sum[r], all_weights));
  });
  return sum;
}

// dx = (softmax * sum(q) - q) * factor, with q = e / C w, plus (1 - e) w[y] at y.
DPT_SIMD void class_row_gradient(const ClassLossArgs& a, size_t r, float all_weights, Lanes top,
                                 Lanes sum, float* dx) {
  const float even = a.smoothing / static_cast<float>(a.c);
  const float* x = a.x + r * a.c;
  const int32_t y = a.target[r];
  const float own = (1 - a.smoothing) * (a.weight == nullptr ? 1 : a.weight[y]);
  const Lanes total = all((own + even * all_weights) * a.factor), part = total / sum,
              evenly = all(even * a.factor);
  each_class(
      a, [&](size_t i, auto at, Lanes weight) __attribute__((always_inline)) {
        at.put(dx + i, exp(at.get(x + i) - top) * part - weight * evenly);
      });
  dx[y] -= own * a.factor;
}

// The same with q of probabilities.
DPT_SIMD void probable_row_gradient(const ClassLossArgs& a, size_t r, Lanes top, Lanes sum,
                                    float* dx) {
  const float *x = a.x + r * a.c, *p = a.probabilities + r * a.c;
  const Lanes factor = all(a.factor);
  Lanes weights = zero();
  each_class(
      a, [&](size_t i, auto at, Lanes weight) __attribute__((always_inline)) {
        const Lanes q = probable(a, weight, at.get(p + i));
        weights += select(at.or_lowest(zero()) < Lanes(0), Lanes(0), q);
      });
  const Lanes part = Lanes(all(sum_of(weights))) * factor / sum;
  each_class(
      a, [&](size_t i, auto at, Lanes weight) __attribute__((always_inline)) {
        const Lanes q = probable(a, weight, at.get(p + i));
        at.put(dx + i, exp(at.get(x + i) - top) * part - q * factor);
      });
}

void cross_entropy_gradient(const ClassLossArgs& a, float* dx) {
  const float all_weights = total_weight(a);
  for (size_t r = 0; r < a.n; ++r, dx += a.c) {
    if (a.probabilities == nullptr && a.target[r] == a.ignore) {
      each_vector(
          a.c, [&](size_t i, auto at) __attribute__((always_inline)) { at.put(dx + i, zero()); });
      continue;
    }
    const float* x = a.x + r * a.c;
    const Lanes top = all(top_of(x, a.c)), sum = all(exp_sum(x, a.c, top));
    if (a.probabilities == nullptr)
      class_row_gradient(a, r, all_weights, top, sum, dx);
    else
      probable_row_gradient(a, r, top, sum, dx);
  }
}

}  // namespace

void add_softmax(ElementwiseKernels& kernels) {
  kernels.rows = {.softmax = softmax,
                  .softmax_gradient = softmax_gradient,
                  .log_softmax = log_softmax,
                  .log_softmax_gradient = log_softmax_gradient,
                  .cross_entropy = cross_entropy,
                  .cross_entropy_gradient = cross_entropy_gradient};
}

}  // namespace dpt::DPT_ISA
