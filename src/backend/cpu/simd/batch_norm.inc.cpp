// Batch normalization on rows of channels. All passes compute in double and are limited by memory
// bandwidth.
#include "backend/cpu/simd/batch_norm.h"

#include "backend/cpu/simd/doubles.h"
#include "backend/cpu/simd/lanes_math.h"
#include "backend/cpu/simd/rounding.h"
#include "backend/cpu/simd/stream.h"
#include "graph/formulas/activation.h"

namespace dpt::DPT_ISA {
namespace {

static_assert(kChannelBlock % kLanes == 0);

// Rows that are processed together, so that the numbers of a channel are loaded once for all of
// them.
template <int kRows>
struct Rows {
  size_t first;
};
constexpr int kAtOnce = 4;

// Calls f(Rows, channel, access) for all vectors of all rows; for each channel in the order of
// rows.
template <class F>
DPT_SIMD void each_block(size_t rows, size_t c, F f) {
  size_t r = 0;
  for (; r + kAtOnce <= rows; r += kAtOnce)
    each_vector(
        c, [&](size_t i, auto at) __attribute__((always_inline)) { f(Rows<kAtOnce>{r}, i, at); });
  for (; r < rows; ++r)
    each_vector(
        c, [&](size_t i, auto at) __attribute__((always_inline)) { f(Rows<1>{r}, i, at); });
}

// Calls f(index of channel i in x) for the rows of a block.
template <int kRows, class F>
DPT_SIMD void each_row(Rows<kRows> block, size_t c, size_t i, F f) {
  DPT_UNROLL
  for (int r = 0; r < kRows; ++r) f((block.first + static_cast<size_t>(r)) * c + i);
}

// Prefetches a page ahead, which makes passes that only read faster. It does not help passes that
// also write.
template <class T>
DPT_SIMD void ahead(const T* p) {
  __builtin_prefetch(p + 4096 / sizeof(T), 0, 2);
}

// Calls f with the rounding of results.
template <class T, class F>
DPT_SIMD void with_rounding_of(RoundTo to, F f) {
  if constexpr (sizeof(T) == 2) {
    f(ToBf16{});
  } else {
    with_rounding(to, f);
  }
}

template <class T>
void sums(const T* x, double* sum, double* squares, size_t rows, size_t c) {
  each_block(
      rows, c, [&](auto block, size_t i, auto at) __attribute__((always_inline)) {
        Doubles s = load(sum + i), q = load(squares + i);
        each_row(
            block, c, i, [&](size_t p) __attribute__((always_inline)) {
              ahead(x + p);
              const Doubles v = get_wide(at, x + p);
              s += v;
              q = madd(v, v, q);
            });
        store(sum + i, s);
        store(squares + i, q);
      });
}

// y = f(x * scale + shift, index, access); f rounds.
template <class T, class F>
DPT_SIMD void scale_and(const T* x, const double* scale, const double* shift, T* y, size_t rows,
                        size_t c, F f) {
  with_store_to(
      y, rows, c, [&](auto put) __attribute__((always_inline)) {
        each_block(
            rows, c, [&](auto block, size_t i, auto at) __attribute__((always_inline)) {
              const Doubles a = load(scale + i), b = load(shift + i);
              each_row(
                  block, c, i, [&](size_t p) __attribute__((always_inline)) {
                    put(at, y + p, f(narrow(madd(get_wide(at, x + p), a, b)), p, at));
                  });
            });
      });
}

template <class T>
void scale_rows(const T* x, const double* scale, const double* shift, T* y, size_t rows, size_t c,
                RoundTo to) {
  with_rounding_of<T>(
      to, [&](auto round) __attribute__((always_inline)) {
        scale_and(
            x, scale, shift, y, rows,
            c, [&](Lanes h, size_t, auto) __attribute__((always_inline)) { return round(h); });
      });
}

template <class T>
void scale_relu(const T* x, const double* scale, const double* shift, T* y, size_t rows, size_t c,
                RoundTo to) {
  with_rounding_of<T>(
      to, [&](auto round) __attribute__((always_inline)) {
        scale_and(
            x, scale, shift, y, rows, c, [&](Lanes h, size_t, auto) __attribute__((always_inline)) {
              return round(formula::relu(h));
            });
      });
}

template <class T>
void scale_add_relu(const T* x, const T* r, const double* scale, const double* shift, T* y,
                    size_t rows, size_t c, RoundTo to) {
  with_rounding_of<T>(
      to, [&](auto round) __attribute__((always_inline)) {
        scale_and(
            x, scale, shift, y, rows,
            c, [&](Lanes h, size_t p, auto at) __attribute__((always_inline)) {
              return formula::relu(round(round(h) + at.get(r + p)));
            });
      });
}

// relu's gradient, with relu's input computed again.
struct Relu {
  const double *scale, *shift;
  [[gnu::always_inline]] Doubles operator()(Lanes dy, Doubles x, size_t i) const {
    return widen(formula::relu_gradient(narrow(madd(x, load(scale + i), load(shift + i))), dy));
  }
};

// gradient(x, index, channel, access) returns dy in double.
template <class T, class F>
DPT_SIMD void sum_gradient(const T* x, const double* mean, double* sum, double* along, size_t rows,
                           size_t c, F gradient) {
  each_block(
      rows, c, [&](auto block, size_t i, auto at) __attribute__((always_inline)) {
        const Doubles m = load(mean + i);
        Doubles s = load(sum + i), a = load(along + i);
        each_row(
            block, c, i, [&](size_t p) __attribute__((always_inline)) {
              ahead(x + p);
              const Doubles v = get_wide(at, x + p), d = gradient(v, p, i, at);
              s += d;
              a = madd(d, v - m, a);
            });
        store(sum + i, s);
        store(along + i, a);
      });
}

template <class T>
void gradient_sums(const T* dy, const T* x, const double* mean, double* sum, double* along,
                   size_t rows, size_t c) {
  sum_gradient(
      x, mean, sum, along, rows,
      c, [&](Doubles, size_t p, size_t, auto at) __attribute__((always_inline)) {
        ahead(dy + p);
        return get_wide(at, dy + p);
      });
}

template <class T>
void relu_gradient_sums(const T* dy, const T* x, const double* mean, const double* scale,
                        const double* shift, double* sum, double* along, size_t rows, size_t c) {
  const Relu relu{scale, shift};
  sum_gradient(
      x, mean, sum, along, rows,
      c, [&](Doubles v, size_t p, size_t i, auto at) __attribute__((always_inline)) {
        ahead(dy + p);
        return relu(at.get(dy + p), v, i);
      });
}

template <class T>
void add_relu_gradient(const T* y, const T* x, const T* dy, const T* dy2, const double* mean, T* dr,
                       double* sum, double* along, size_t rows, size_t c, RoundTo to) {
  const auto passes = [&](auto put, auto round) __attribute__((always_inline)) {
    sum_gradient(
        x, mean, sum, along, rows,
        c, [&](Doubles, size_t p, size_t, auto at) __attribute__((always_inline)) {
          const Lanes given = dy2 == nullptr ? at.get(dy + p) : at.get(dy + p) + at.get(dy2 + p);
          const Lanes d = round(formula::relu_gradient(at.get(y + p), given));
          put(at, dr + p, d);
          return widen(d);
        });
  };
  with_rounding_of<T>(
      to, [&](auto round) __attribute__((always_inline)) {
        with_store_to(
            dr, rows, c, [&](auto put) __attribute__((always_inline)) { passes(put, round); });
      });
}

// gradient: see sum_gradient().
template <class T, class F>
DPT_SIMD void gradient_of_input(const T* x, const BatchNormLine& line, T* dx, size_t rows, size_t c,
                                RoundTo to, F gradient) {
  const auto passes = [&](auto put, auto round) __attribute__((always_inline)) {
    each_block(
        rows, c, [&](auto block, size_t i, auto at) __attribute__((always_inline)) {
          const Doubles a = load(line.scale + i), b = load(line.slope + i),
                        d = load(line.shift + i);
          each_row(
              block, c, i, [&](size_t p) __attribute__((always_inline)) {
                const Doubles v = get_wide(at, x + p);
                put(at, dx + p, round(narrow(madd(gradient(v, p, i, at), a, madd(v, b, d)))));
              });
        });
  };
  with_rounding_of<T>(
      to, [&](auto round) __attribute__((always_inline)) {
        with_store_to(
            dx, rows, c, [&](auto put) __attribute__((always_inline)) { passes(put, round); });
      });
}

template <class T>
void input_gradient(const T* dy, const T* x, const BatchNormLine& line, T* dx, size_t rows,
                    size_t c, RoundTo to) {
  gradient_of_input(
      x, line, dx, rows, c,
      to, [&](Doubles, size_t p, size_t, auto at) __attribute__((always_inline)) {
        return get_wide(at, dy + p);
      });
}

template <class T>
void relu_input_gradient(const T* dy, const T* x, const BatchNormLine& line, const double* scale,
                         const double* shift, T* dx, size_t rows, size_t c, RoundTo to) {
  const Relu relu{scale, shift};
  gradient_of_input(
      x, line, dx, rows, c,
      to, [&](Doubles v, size_t p, size_t i, auto at) __attribute__((always_inline)) {
        return relu(at.get(dy + p), v, i);
      });
}

template <class T>
void add(BatchNormOf<T>& kernels) {
  kernels.sums = sums<T>;
  kernels.scale = scale_rows<T>;
  kernels.scale_relu = scale_relu<T>;
  kernels.scale_add_relu = scale_add_relu<T>;
  kernels.gradient_sums = gradient_sums<T>;
  kernels.relu_gradient_sums = relu_gradient_sums<T>;
  kernels.add_relu_gradient = add_relu_gradient<T>;
  kernels.input_gradient = input_gradient<T>;
  kernels.relu_input_gradient = relu_input_gradient<T>;
}

}  // namespace

void add_batch_norm(BatchNormKernels& kernels) {
  add<float>(kernels);
  add(kernels.bf16);
}

}  // namespace dpt::DPT_ISA
