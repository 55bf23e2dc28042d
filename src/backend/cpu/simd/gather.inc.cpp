// Gathers rows of a data set into a batch and converts them.
#include "backend/cpu/simd/tables.h"
#include "backend/cpu/simd/vector.h"
#include "base/units.h"

namespace dpt::DPT_ISA {
namespace {

#if defined(__AVX512F__)
using Bytes = __m512i;  // kLanes bytes, one in each 32-bit lane
DPT_SIMD Bytes load_bytes(const uint8_t* p) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
DPT_SIMD Vector to_floats(Bytes b) { return _mm512_cvtepi32_ps(b); }
DPT_SIMD Vector look_up(const float* table, Bytes b) { return _mm512_i32gather_ps(b, table, 4); }
DPT_SIMD Vector multiply(Vector a, Vector b) { return _mm512_mul_ps(a, b); }
#elif defined(__AVX2__)
using Bytes = __m256i;
DPT_SIMD Bytes load_bytes(const uint8_t* p) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}
DPT_SIMD Vector to_floats(Bytes b) { return _mm256_cvtepi32_ps(b); }
DPT_SIMD Vector look_up(const float* table, Bytes b) { return _mm256_i32gather_ps(table, b, 4); }
DPT_SIMD Vector multiply(Vector a, Vector b) { return _mm256_mul_ps(a, b); }
#else
using Bytes = const uint8_t*;
DPT_SIMD Bytes load_bytes(const uint8_t* p) { return p; }
DPT_SIMD Vector to_floats(Bytes b) {
  return Vector{static_cast<float>(b[0]), static_cast<float>(b[1]), static_cast<float>(b[2]),
                static_cast<float>(b[3])};
}
DPT_SIMD Vector look_up(const float* table, Bytes b) {
  return Vector{table[b[0]], table[b[1]], table[b[2]], table[b[3]]};
}
DPT_SIMD Vector multiply(Vector a, Vector b) { return a * b; }
#endif

// Rows are read in random order, so hardware does not prefetch the next ones. How many rows ahead
// are fetched: of narrow ones more, as each takes a cache line of its own.
DPT_SIMD size_t rows_ahead(size_t bytes) { return bytes < kCacheLine ? 32 : 2; }

DPT_SIMD void prefetch_row(const void* row, size_t bytes) {
  for (size_t i = 0; i < bytes; i += kCacheLine)
    __builtin_prefetch(static_cast<const char*>(row) + i);
}

// one(byte) and lanes(bytes): the conversion of one and of kLanes bytes.
template <class One, class Lanes>
DPT_SIMD void gather_bytes(const uint8_t* rows, const int64_t* index, size_t n, size_t features,
                           float* x, One one, Lanes lanes) {
  const size_t ahead = rows_ahead(features);
  for (size_t r = 0; r < n; ++r, x += features) {
    if (r + ahead < n)
      prefetch_row(rows + static_cast<size_t>(index[r + ahead]) * features, features);
    const uint8_t* row = rows + static_cast<size_t>(index[r]) * features;
    size_t i = 0;
    for (; i + 2 * kLanes <= features; i += 2 * kLanes) {
      store(x + i, lanes(load_bytes(row + i)));
      store(x + i + kLanes, lanes(load_bytes(row + i + kLanes)));
    }
    for (; i + kLanes <= features; i += kLanes) store(x + i, lanes(load_bytes(row + i)));
    for (; i < features; ++i) x[i] = one(row[i]);
  }
}

void gather_u8(const uint8_t* rows, const int64_t* index, size_t n, size_t features, float scale,
               float shift, float* x) {
  gather_bytes(
      rows, index, n, features, x,
      [=](uint8_t b)
          __attribute__((always_inline)) { return static_cast<float>(b) * scale + shift; },
      [=](Bytes b) __attribute__((always_inline)) {
        return add(multiply(to_floats(b), all(scale)), all(shift));
      });
}

void gather_u8_table(const uint8_t* rows, const int64_t* index, size_t n, size_t features,
                     const float* table, float* x) {
  gather_bytes(
      rows, index, n, features,
      x, [=](uint8_t b) __attribute__((always_inline)) { return table[b]; },
      [=](Bytes b) __attribute__((always_inline)) { return look_up(table, b); });
}

void gather_f32(const float* rows, const int64_t* index, size_t n, size_t features, float* x) {
  const size_t bytes = features * sizeof(float), ahead = rows_ahead(bytes);
  for (size_t r = 0; r < n; ++r, x += features) {
    if (r + ahead < n) prefetch_row(rows + static_cast<size_t>(index[r + ahead]) * features, bytes);
    __builtin_memcpy(x, rows + static_cast<size_t>(index[r]) * features, bytes);
  }
}

}  // namespace

void add_gathers(SimdKernels& kernels) {
  kernels.gather_u8 = gather_u8;
  kernels.gather_u8_table = gather_u8_table;
  kernels.gather_f32 = gather_f32;
}

}  // namespace dpt::DPT_ISA
