// Softmax, log_softmax and cross entropy along the rows of a matrix. A row that is shorter than a
// vector (ten classes, say) is one vector whose last lanes are -inf.
#include "backend/cpu/simd/elementwise.h"
#include "backend/cpu/simd/lanes_math.h"

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

DPT_SIMD float plain_sum(const float* x, size_t n) {
  Lanes sum = zero();
  each_vector(
      n, [&](size_t i, auto at) __attribute__((always_inline)) { sum += at.get(x + i); });
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

// The sum of the weights of all classes.
DPT_SIMD float total_weight(const ClassLossArgs& a) {
  return a.weight == nullptr ? static_cast<float>(a.c) : plain_sum(a.weight, a.c);
}

// Terms: (1 - e) w[y] (l - x[y]) + e / C (W l - sum(w x)) with l = top + log sum, e the label
// smoothing and W the sum of w.
double cross_entropy(const ClassLossArgs& a) {
  const float even = a.smoothing / static_cast<float>(a.c), all_weights = total_weight(a);
  double sum = 0;
  each_block(a.x, a.n, a.c, [&](size_t first, size_t count, const RowSums& s) {
    for (size_t r = 0; r < count; ++r) {
      const int32_t y = a.target[first + r];
      if (y == a.ignore) continue;
      const float* x = a.x + (first + r) * a.c;
      const float w = a.weight == nullptr ? 1 : a.weight[y];
      float term = w == 0 ? 0 : (1 - a.smoothing) * w * (s.log_sum[r] - (x[y] - s.top[r]));
      if (a.smoothing != 0) {
        Lanes below = zero();
        const Lanes top = all(s.top[r]);
        each_vector(
            a.c, [&](size_t i, auto at) __attribute__((always_inline)) {
              const Lanes weight = a.weight == nullptr ? Lanes(1) : at.get(a.weight + i);
              below +=
                  select(at.or_lowest(zero()) < Lanes(0), Lanes(0), weight * (at.get(x + i) - top));
            });
        term += even * (all_weights * s.log_sum[r] - sum_of(below));
      }
      sum += static_cast<double>(term);
    }
  });
  return sum;
}

// dx = (softmax * sum(q) - q) * factor, with q = e / C w, plus (1 - e) w[y] at y.
void cross_entropy_gradient(const ClassLossArgs& a, float* dx) {
  const float even = a.smoothing / static_cast<float>(a.c), all_weights = total_weight(a);
  for (size_t r = 0; r < a.n; ++r) {
    const float* x = a.x + r * a.c;
    float* to = dx + r * a.c;
    const int32_t y = a.target[r];
    if (y == a.ignore) {
      each_vector(
          a.c, [&](size_t i, auto at) __attribute__((always_inline)) { at.put(to + i, zero()); });
      continue;
    }
    const float own = (1 - a.smoothing) * (a.weight == nullptr ? 1 : a.weight[y]);
    const Lanes top = all(top_of(x, a.c));
    const Lanes sum = all(exp_sum(x, a.c, top)), total = all((own + even * all_weights) * a.factor);
    const Lanes part = total / sum, evenly = all(even * a.factor);
    each_vector(
        a.c, [&](size_t i, auto at) __attribute__((always_inline)) {
          const Lanes weight = a.weight == nullptr ? Lanes(1) : at.get(a.weight + i);
          at.put(to + i, exp(at.get(x + i) - top) * part - weight * evenly);
        });
    to[y] -= own * a.factor;
  }
}

}  // namespace

void add_softmax(ElementwiseKernels& kernels) {
  kernels.softmax = softmax;
  kernels.softmax_gradient = softmax_gradient;
  kernels.log_softmax = log_softmax;
  kernels.log_softmax_gradient = log_softmax_gradient;
  kernels.cross_entropy = cross_entropy;
  kernels.cross_entropy_gradient = cross_entropy_gradient;
}

}  // namespace dpt::DPT_ISA
