// Softmax, log_softmax and cross entropy along the columns of a matrix [classes, positions], such
// as the channels of an image: vectors have the same class of adjacent positions.
#include "backend/cpu/simd/class_terms.h"

namespace dpt::DPT_ISA {
namespace {

// The sum of f(k) for k < n. Parts keep the errors of long sums small.
template <class F>
DPT_SIMD Lanes sum_over(size_t n, F f) {
  constexpr size_t kPart = 64;
  Lanes sum = zero();
  for (size_t k = 0; k < n;) {
    Lanes part = zero();
    for (const size_t end = n - k < kPart ? n : k + kPart; k < end; ++k) part += f(k);
    sum += part;
  }
  return sum;
}

// One vector of columns: row k of a matrix is row(matrix, k).
template <class Access>
struct Columns {
  size_t first, positions;
  Access at;

  [[gnu::always_inline]] Lanes row(const float* x, size_t k) const {
    return at.get(x + k * positions + first);
  }
  [[gnu::always_inline]] void put(float* y, size_t k, Lanes v) const {
    at.put(y + k * positions + first, v);
  }
  [[gnu::always_inline]] Lanes top(const float* x, size_t classes) const {
    Lanes top = -infinity();
    for (size_t k = 0; k < classes; ++k) top = max(top, row(x, k));
    return top;
  }
  [[gnu::always_inline]] Lanes exp_sum(const float* x, size_t classes, Lanes top) const {
    return sum_over(
        classes, [&](size_t k) __attribute__((always_inline)) { return exp(row(x, k) - top); });
  }
  // The same, which stores the terms in y.
  [[gnu::always_inline]] Lanes put_exp(const float* x, float* y, size_t classes, Lanes top) const {
    return sum_over(
        classes, [&](size_t k) __attribute__((always_inline)) {
          const Lanes e = exp(row(x, k) - top);
          put(y, k, e);
          return e;
        });
  }
};

// Calls f(columns) for each vector of columns.
template <class F>
DPT_SIMD void each_columns(size_t positions, F f) {
  each_vector(
      positions, [&](size_t i, auto at) __attribute__((always_inline)) {
        f(Columns<decltype(at)>{i, positions, at});
      });
}

void softmax(const float* x, float* y, size_t positions, size_t classes) {
  each_columns(
      positions, [&](auto columns) __attribute__((always_inline)) {
        const Lanes sum = columns.put_exp(x, y, classes, columns.top(x, classes));
        const Lanes factor = Lanes(1) / sum;
        for (size_t k = 0; k < classes; ++k) columns.put(y, k, columns.row(y, k) * factor);
      });
}

void softmax_gradient(const float* y, const float* dy, float* dx, size_t positions,
                      size_t classes) {
  each_columns(
      positions, [&](auto columns) __attribute__((always_inline)) {
        const Lanes sum = sum_over(
            classes, [&](size_t k) __attribute__((always_inline)) {
              return columns.row(y, k) * columns.row(dy, k);
            });
        for (size_t k = 0; k < classes; ++k)
          columns.put(dx, k, columns.row(y, k) * (columns.row(dy, k) - sum));
      });
}

void log_softmax(const float* x, float* y, size_t positions, size_t classes) {
  each_columns(
      positions, [&](auto columns) __attribute__((always_inline)) {
        const Lanes top = columns.top(x, classes);
        const Lanes log_sum = log(columns.exp_sum(x, classes, top));
        for (size_t k = 0; k < classes; ++k) columns.put(y, k, columns.row(x, k) - top - log_sum);
      });
}

void log_softmax_gradient(const float* y, const float* dy, float* dx, size_t positions,
                          size_t classes) {
  each_columns(
      positions, [&](auto columns) __attribute__((always_inline)) {
        const Lanes sum = sum_over(
            classes, [&](size_t k) __attribute__((always_inline)) { return columns.row(dy, k); });
        for (size_t k = 0; k < classes; ++k)
          columns.put(dx, k, columns.row(dy, k) - exp(columns.row(y, k)) * sum);
      });
}

DPT_SIMD Lanes weight_of(const ClassLossArgs& a, size_t k) {
  return a.weight == nullptr ? Lanes(1) : Lanes(all(a.weight[k]));
}

double cross_entropy(const ClassLossArgs& a) {
  const float all_weights = total_weight(a);
  double sum = 0;
  each_columns(
      a.n, [&](auto columns) __attribute__((always_inline)) {
        const size_t first = columns.first, count = a.n - first < kLanes ? a.n - first : kLanes;
        const Lanes top = columns.top(a.x, a.c);
        const Lanes log_sum = log(columns.exp_sum(a.x, a.c, top));
        float terms[kLanes], tops[kLanes], log_sums[kLanes];
        store(tops, top.v);
        store(log_sums, log_sum.v);
        const auto score = [&](size_t k) __attribute__((always_inline)) {
          return columns.row(a.x, k) - top;
        };
        Lanes below = zero();
        if (a.probabilities != nullptr)
          below = sum_over(
              a.c, [&](size_t k) __attribute__((always_inline)) {
                const Lanes q = probable(a, weight_of(a, k), columns.row(a.probabilities, k));
                return probable_term(q, log_sum, score(k));
              });
        else if (a.smoothing != 0)
          below = sum_over(
              a.c, [&](size_t k)
                       __attribute__((always_inline)) { return weight_of(a, k) * score(k); });
        store(terms, below.v);
        for (size_t j = 0; j < count; ++j) {
          float term = terms[j];
          if (a.probabilities == nullptr) {
            const int32_t y = a.target[first + j];
            if (y == a.ignore) continue;
            const float x = a.x[static_cast<size_t>(y) * a.n + first + j];
            term = class_term(a, y, x - tops[j], log_sums[j], all_weights, terms[j]);
          }
          sum += static_cast<double>(term);
        }
      });
  return sum;
}

// The factors of a class's column: q is `evenly` times the weight of each class, plus own[j] for
// the class of position j, which `total` includes.
struct ClassFactors {
  float own[kLanes] = {}, total[kLanes] = {}, evenly[kLanes] = {};
  [[gnu::always_inline]] ClassFactors(const ClassLossArgs& a, size_t first, float all_weights) {
    const float even = a.smoothing / static_cast<float>(a.c);
    for (size_t j = 0; j < kLanes && first + j < a.n; ++j) {
      const int32_t y = a.target[first + j];
      if (y == a.ignore) continue;
      const float w = (1 - a.smoothing) * (a.weight == nullptr ? 1 : a.weight[y]);
      own[j] = w * a.factor;
      total[j] = (w + even * all_weights) * a.factor;
      evenly[j] = even * a.factor;
    }
  }
};

// dx = (softmax * sum(q) - q) * factor.
void cross_entropy_gradient(const ClassLossArgs& a, float* dx) {
  const float all_weights = total_weight(a);
  each_columns(
      a.n, [&](auto columns) __attribute__((always_inline)) {
        const size_t first = columns.first;
        const Lanes sum = columns.put_exp(a.x, dx, a.c, columns.top(a.x, a.c));
        if (a.probabilities != nullptr) {
          const auto q = [&](size_t k) __attribute__((always_inline)) {
            return probable(a, weight_of(a, k), columns.row(a.probabilities, k));
          };
          const Lanes factor = all(a.factor), part = sum_over(a.c, q) * factor / sum;
          for (size_t k = 0; k < a.c; ++k)
            columns.put(dx, k, columns.row(dx, k) * part - q(k) * factor);
          return;
        }
        const ClassFactors factors(a, first, all_weights);
        const Lanes total = load(factors.total), evenly = load(factors.evenly), part = total / sum;
        for (size_t k = 0; k < a.c; ++k) {
          const Lanes d = columns.row(dx, k) * part - weight_of(a, k) * evenly;
          columns.put(dx, k, select(total == Lanes(0), Lanes(0), d));
        }
        for (size_t j = 0; j < kLanes && first + j < a.n; ++j)
          if (a.target[first + j] != a.ignore)
            dx[static_cast<size_t>(a.target[first + j]) * a.n + first + j] -= factors.own[j];
      });
}

}  // namespace

void add_softmax_columns(ElementwiseKernels& kernels) {
  kernels.columns = {.softmax = softmax,
                     .softmax_gradient = softmax_gradient,
                     .log_softmax = log_softmax,
                     .log_softmax_gradient = log_softmax_gradient,
                     .cross_entropy = cross_entropy,
                     .cross_entropy_gradient = cross_entropy_gradient};
}

}  // namespace dpt::DPT_ISA
