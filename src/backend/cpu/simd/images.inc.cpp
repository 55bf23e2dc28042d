// Images in channels_last: transposition to and from planes, pooling.
#include "backend/cpu/simd/images.h"

#include "backend/cpu/simd/lanes.h"

namespace dpt::DPT_ISA {
namespace {

// Transposes squares of kLanes x kLanes, then the remaining elements.
void transpose_matrix(const float* x, float* y, size_t rows, size_t columns) {
  size_t i = 0;
  for (; i + kLanes <= rows; i += kLanes) {
    const float* from[kLanes];
    for (int r = 0; r < kLanes; ++r) from[r] = x + (i + r) * columns;
    size_t j = 0;
    for (; j + kLanes <= columns; j += kLanes) transpose(from, j, y + j * rows + i, rows);
    for (; j < columns; ++j)
      for (int r = 0; r < kLanes; ++r) y[j * rows + i + r] = from[r][j];
  }
  for (; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j) y[j * rows + i] = x[i * columns + j];
}

// In blocks of which a column is a cache line of y.
void transpose_halves(const uint16_t* x, uint16_t* y, size_t rows, size_t columns) {
  constexpr size_t kBlock = 32;
  for (size_t i = 0; i < rows; i += kBlock) {
    const size_t height = rows - i < kBlock ? rows - i : kBlock;
    for (size_t j = 0; j < columns; ++j)
      for (size_t r = 0; r < height; ++r) y[j * rows + i + r] = x[(i + r) * columns + j];
  }
}

// Calls f(position in x) for the elements of the window of row i and column j of y, row by row.
template <class F>
DPT_SIMD void each_place(const PoolArgs& a, size_t i, size_t j, F f) {
  for (size_t r = a.begin[i]; r < a.begin[i + 1]; ++r)
    for (int64_t w = a.first[j]; w < a.last[j]; w += a.step) f(a.row[r] + static_cast<size_t>(w));
}

// The position of the first element of the window of row i and column j; 0 if it has none.
DPT_SIMD int32_t first_place(const PoolArgs& a, size_t i, size_t j) {
  const size_t r = a.begin[i];
  return r < a.begin[i + 1] && a.first[j] < a.last[j] ? static_cast<int32_t>(a.row[r]) + a.first[j]
                                                      : 0;
}

// The bits of an index as lanes.
DPT_SIMD Lanes bits_of(int32_t position) {
  float bits;
  __builtin_memcpy(&bits, &position, sizeof bits);
  return all(bits);
}

template <class T>
void max_pool(const T* x, T* y, int32_t* position, const PoolArgs& a) {
  for (size_t i = 0; i < a.rows; ++i)
    for (size_t j = 0; j < a.columns; ++j, y += a.c, position += a.c)
      each_vector(
          a.c, [&](size_t c, auto at) __attribute__((always_inline)) {
            Lanes best = all(-__builtin_inff()), found = bits_of(first_place(a, i, j));
            each_place(
                a, i, j, [&](size_t p) __attribute__((always_inline)) {
                  const Lanes v = at.get(x + p * a.c + c);
                  // Take v if v > best or v is nan, that is, not v <= best. If best is nan, only
                  // another nan is taken.
                  const Which keeps = v <= best, still = best == best, number = v == v;
                  const Lanes here = bits_of(static_cast<int32_t>(p));
                  const Lanes newer = select(keeps, found, here);
                  found = select(still, newer, select(number, found, here));
                  best = select(still, select(keeps, best, v), best);
                });
            at.put(y + c, best);
            at.put(reinterpret_cast<float*>(position) + c, found);
          });
}

DPT_SIMD float number(float x) { return x; }
DPT_SIMD float number(uint16_t bf16) {
  const uint32_t bits = static_cast<uint32_t>(bf16) << 16;
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

template <class T>
void max_pool_gradient(const T* dy, const int32_t* position, float* dx, const PoolArgs& a) {
  for (size_t i = 0; i < a.rows; ++i)
    for (size_t j = 0; j < a.columns; ++j, dy += a.c, position += a.c)
      for (size_t c = 0; c < a.c; ++c)
        dx[static_cast<size_t>(position[c]) * a.c + c] += number(dy[c]);
}

void sum_channels(const uint16_t* x, float* sums, size_t rows, size_t c) {
  each_vector(
      c, [&](size_t i, auto at) __attribute__((always_inline)) {
        Lanes sum = zero();
        for (size_t r = 0; r < rows; ++r) sum += at.get(x + r * c + i);
        at.put(sums + i, sum);
      });
}

void mean_pool(const float* x, float* y, const PoolArgs& a) {
  for (size_t i = 0; i < a.rows; ++i)
    for (size_t j = 0; j < a.columns; ++j, y += a.c) {
      const Lanes divisor = all(a.divisor[i * a.columns + j]);
      each_vector(
          a.c, [&](size_t c, auto at) __attribute__((always_inline)) {
            Lanes sum = zero();
            each_place(
                a, i, j, [&](size_t p) __attribute__((always_inline)) {
                  sum += at.get(x + p * a.c + c);
                });
            at.put(y + c, sum / divisor);
          });
    }
}

// Whether add_to_rows() adds faster to the window of column j: several positions fit into a vector.
DPT_SIMD bool has_long_rows(const PoolArgs& a, size_t j) {
  constexpr int32_t kLong = 8;
  return a.step == 1 && a.c < kLanes && kLanes % a.c == 0 && a.last[j] - a.first[j] >= kLong;
}

// Adds dy[c] / divisor to all positions of a window, row by row. One position after the other would
// take longer, because a masked store delays loads of what lies behind it.
DPT_SIMD void add_to_rows(const float* dy, Lanes divisor, float* dx, const PoolArgs& a, size_t i,
                          size_t j) {
  float repeated[kLanes];
  for (size_t k = 0; k < kLanes; ++k) repeated[k] = dy[k % a.c];
  const Lanes part = Lanes(load(repeated)) / divisor;
  const size_t length = static_cast<size_t>(a.last[j] - a.first[j]) * a.c;
  for (size_t r = a.begin[i]; r < a.begin[i + 1]; ++r) {
    float* const row = dx + (a.row[r] + static_cast<size_t>(a.first[j])) * a.c;
    each_vector(
        length, [&](size_t k, auto at)
                    __attribute__((always_inline)) { at.put(row + k, at.get(row + k) + part); });
  }
}

void mean_pool_gradient(const float* dy, float* dx, const PoolArgs& a) {
  for (size_t i = 0; i < a.rows; ++i)
    for (size_t j = 0; j < a.columns; ++j, dy += a.c) {
      const Lanes divisor = all(a.divisor[i * a.columns + j]);
      if (has_long_rows(a, j)) {
        add_to_rows(dy, divisor, dx, a, i, j);
        continue;
      }
      each_vector(
          a.c, [&](size_t c, auto at) __attribute__((always_inline)) {
            const Lanes part = at.get(dy + c) / divisor;
            each_place(
                a, i, j, [&](size_t p) __attribute__((always_inline)) {
                  float* const to = dx + p * a.c + c;
                  at.put(to, at.get(to) + part);
                });
          });
    }
}

}  // namespace

void add_images(ImageKernels& kernels) {
  kernels.transpose = transpose_matrix;
  kernels.transpose_halves = transpose_halves;
  kernels.max_pool = max_pool<float>;
  kernels.max_pool_bf16 = max_pool<uint16_t>;
  kernels.max_pool_gradient = max_pool_gradient<float>;
  kernels.max_pool_gradient_bf16 = max_pool_gradient<uint16_t>;
  kernels.sum_channels_bf16 = sum_channels;
  kernels.mean_pool = mean_pool;
  kernels.mean_pool_gradient = mean_pool_gradient;
}

}  // namespace dpt::DPT_ISA
