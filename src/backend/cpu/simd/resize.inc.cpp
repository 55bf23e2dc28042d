// Images in channels_last that are resized: first along the height, where whole rows are added,
// then along the width.
#include "backend/cpu/simd/resize.h"

#include "backend/cpu/simd/lanes.h"

namespace dpt::DPT_ISA {
namespace {

// y[n] = the sum of the rows that lie `step` elements apart in x, with the weights of a position.
template <size_t kTaps>
DPT_SIMD void sum_taps(const float* x, size_t step, const int32_t* at, const float* weight,
                       float* y, size_t n) {
  const float* row[kTaps];
  for (size_t k = 0; k < kTaps; ++k) row[k] = x + static_cast<size_t>(at[k]) * step;
  each_vector(
      n, [&](size_t i, auto access) __attribute__((always_inline)) {
        Lanes sum = access.get(row[0] + i);
        if constexpr (kTaps > 1) sum = sum * Lanes(all(weight[0]));
        for (size_t k = 1; k < kTaps; ++k) sum = madd(access.get(row[k] + i), all(weight[k]), sum);
        access.put(y + i, sum);
      });
}

// Adds the products of g[n] and the weights to these rows of x.
template <size_t kTaps>
DPT_SIMD void add_taps(const float* g, float* x, size_t step, const int32_t* at,
                       const float* weight, size_t n) {
  for (size_t k = 0; k < kTaps; ++k) {
    float* const row = x + static_cast<size_t>(at[k]) * step;
    const Lanes factor = all(weight[k]);
    each_vector(
        n, [&](size_t i, auto access) __attribute__((always_inline)) {
          access.put(row + i, madd(access.get(g + i), factor, access.get(row + i)));
        });
  }
}

// Calls f(the number of taps as a type).
template <class F>
DPT_SIMD void with_taps(size_t taps, F f) {
  if (taps == 1) f.template operator()<1>();
  if (taps == 2) f.template operator()<2>();
  if (taps == 4) f.template operator()<4>();
}

// One position of y, of n elements.
DPT_SIMD void sum_position(const ResizeAxis& a, size_t i, const float* x, size_t step, float* y,
                           size_t n) {
  with_taps(
      a.taps, [&]<size_t kTaps>() __attribute__((always_inline)) {
        sum_taps<kTaps>(x, step, a.at + i * kTaps, a.weight + i * kTaps, y, n);
      });
}
DPT_SIMD void add_position(const ResizeAxis& a, size_t i, const float* g, float* x, size_t step,
                           size_t n) {
  with_taps(
      a.taps, [&]<size_t kTaps>() __attribute__((always_inline)) {
        add_taps<kTaps>(g, x, step, a.at + i * kTaps, a.weight + i * kTaps, n);
      });
}

// The first position behind `begin` that has another source. REQUIRES: one tap.
DPT_SIMD size_t end_of_copies(const ResizeAxis& a, size_t begin) {
  size_t end = begin + 1;
  while (end < a.out && a.at[end] == a.at[begin]) ++end;
  return end;
}

// Both with one tap: copies of a row, or of a position, follow each other.
void copy(const float* x, float* y, const ResizeArgs& a) {
  const size_t width = a.columns.in * a.c, out = a.columns.out * a.c;
  for (size_t i = 0; i < a.rows.out; ++i, y += out) {
    if (i > 0 && a.rows.at[i] == a.rows.at[i - 1]) {
      __builtin_memcpy(y, y - out, out * sizeof(float));
      continue;
    }
    const float* const row = x + static_cast<size_t>(a.rows.at[i]) * width;
    for (size_t begin = 0, end; begin < a.columns.out; begin = end) {
      end = end_of_copies(a.columns, begin);
      const float* const from = row + static_cast<size_t>(a.columns.at[begin]) * a.c;
      each_vector(
          a.c, [&](size_t c, auto access) __attribute__((always_inline)) {
            const Lanes v = access.get(from + c);
            for (size_t j = begin; j < end; ++j) access.put(y + j * a.c + c, v);
          });
    }
  }
}

void add_copies(const float* dy, float* dx, const ResizeArgs& a) {
  const size_t width = a.columns.in * a.c, out = a.columns.out * a.c;
  for (size_t top = 0, bottom; top < a.rows.out; top = bottom) {
    bottom = end_of_copies(a.rows, top);
    float* const row = dx + static_cast<size_t>(a.rows.at[top]) * width;
    for (size_t begin = 0, end; begin < a.columns.out; begin = end) {
      end = end_of_copies(a.columns, begin);
      float* const to = row + static_cast<size_t>(a.columns.at[begin]) * a.c;
      each_vector(
          a.c, [&](size_t c, auto access) __attribute__((always_inline)) {
            Lanes sum = access.get(to + c);
            for (size_t i = top; i < bottom; ++i)
              for (size_t j = begin; j < end; ++j) sum += access.get(dy + i * out + j * a.c + c);
            access.put(to + c, sum);
          });
    }
  }
}

// If columns of one tap are not kept, rows have one tap, too: other resizes have several in both.
bool copies(const ResizeArgs& a) { return a.columns.taps == 1 && !a.columns.keeps; }

void forward(const float* x, float* y, const ResizeArgs& a) {
  if (copies(a)) return copy(x, y, a);
  const size_t width = a.columns.in * a.c;
  for (size_t i = 0; i < a.rows.out; ++i, y += a.columns.out * a.c) {
    if (a.columns.keeps) {
      sum_position(a.rows, i, x, width, y, width);
      continue;
    }
    const float* row = x + static_cast<size_t>(a.rows.at[i]) * width;
    if (a.rows.taps > 1) {
      sum_position(a.rows, i, x, width, a.row, width);
      row = a.row;
    }
    for (size_t j = 0; j < a.columns.out; ++j)
      sum_position(a.columns, j, row, a.c, y + j * a.c, a.c);
  }
}

void gradient(const float* dy, float* dx, const ResizeArgs& a) {
  if (copies(a)) return add_copies(dy, dx, a);
  const size_t width = a.columns.in * a.c;
  for (size_t i = 0; i < a.rows.out; ++i, dy += a.columns.out * a.c) {
    if (a.columns.keeps) {
      add_position(a.rows, i, dy, dx, width, width);
      continue;
    }
    const bool direct = a.rows.taps == 1;
    float* const row = direct ? dx + static_cast<size_t>(a.rows.at[i]) * width : a.row;
    if (!direct)
      each_vector(
          width, [&](size_t k, auto at)
                     __attribute__((always_inline)) { at.put(row + k, zero()); });
    for (size_t j = 0; j < a.columns.out; ++j)
      add_position(a.columns, j, dy + j * a.c, row, a.c, a.c);
    if (!direct) add_position(a.rows, i, row, dx, width, width);
  }
}

}  // namespace

void add_resize(ResizeKernels& kernels) {
  kernels.forward = forward;
  kernels.gradient = gradient;
}

}  // namespace dpt::DPT_ISA
