// Batch normalisation over rows of channels: all its passes are bound by memory, and in double.
#include "backend/cpu/simd/batch_norm.h"

#include "backend/cpu/simd/doubles.h"

namespace dpt::DPT_ISA {
namespace {

static_assert(kChannelBlock % kLanes == 0);

// Rows that are gone through at once, so that what each channel has is loaded once for all.
template <int kRows>
struct Rows {
  size_t first;
};
constexpr int kAtOnce = 4;

// Calls f(Rows, channel, access) for all vectors of all rows; those of a channel from the top down.
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

// Calls f(place of channel i in the row) for the rows of a block.
template <int kRows, class F>
DPT_SIMD void each_row(Rows<kRows> block, size_t c, size_t i, F f) {
  DPT_UNROLL
  for (int r = 0; r < kRows; ++r) f((block.first + static_cast<size_t>(r)) * c + i);
}

void sums(const float* x, double* sum, double* squares, size_t rows, size_t c) {
  each_block(
      rows, c, [&](auto block, size_t i, auto at) __attribute__((always_inline)) {
        Doubles s = load(sum + i), q = load(squares + i);
        each_row(
            block, c, i, [&](size_t p) __attribute__((always_inline)) {
              const Doubles v = get_wide(at, x + p);
              s += v;
              q = madd(v, v, q);
            });
        store(sum + i, s);
        store(squares + i, q);
      });
}

void scale_rows(const float* x, const double* scale, const double* shift, float* y, size_t rows,
                size_t c) {
  each_block(
      rows, c, [&](auto block, size_t i, auto at) __attribute__((always_inline)) {
        const Doubles a = load(scale + i), b = load(shift + i);
        each_row(
            block, c, i, [&](size_t p) __attribute__((always_inline)) {
              at.put(y + p, narrow(madd(get_wide(at, x + p), a, b)));
            });
      });
}

void gradient_sums(const float* dy, const float* x, const double* mean, double* sum, double* along,
                   size_t rows, size_t c) {
  each_block(
      rows, c, [&](auto block, size_t i, auto at) __attribute__((always_inline)) {
        const Doubles m = load(mean + i);
        Doubles s = load(sum + i), a = load(along + i);
        each_row(
            block, c, i, [&](size_t p) __attribute__((always_inline)) {
              const Doubles d = get_wide(at, dy + p);
              s += d;
              a = madd(d, get_wide(at, x + p) - m, a);
            });
        store(sum + i, s);
        store(along + i, a);
      });
}

void input_gradient(const float* dy, const float* x, const double* scale, const double* slope,
                    const double* shift, float* dx, size_t rows, size_t c) {
  each_block(
      rows, c, [&](auto block, size_t i, auto at) __attribute__((always_inline)) {
        const Doubles a = load(scale + i), b = load(slope + i), d = load(shift + i);
        each_row(
            block, c, i, [&](size_t p) __attribute__((always_inline)) {
              const Doubles rest = madd(get_wide(at, x + p), b, d);
              at.put(dx + p, narrow(madd(get_wide(at, dy + p), a, rest)));
            });
      });
}

}  // namespace

void add_batch_norm(BatchNormKernels& kernels) {
  kernels.sums = sums;
  kernels.scale = scale_rows;
  kernels.gradient_sums = gradient_sums;
  kernels.input_gradient = input_gradient;
}

}  // namespace dpt::DPT_ISA
