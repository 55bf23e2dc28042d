// Sums over shards, and sums of squares.
#include "backend/cpu/simd/shards.h"
#include "backend/cpu/simd/tables.h"

namespace dpt::DPT_ISA {
namespace {

void sum_shards_range(float* to, const float* const* shards, int shard_count, size_t begin,
                      size_t end) {
  for (size_t i = begin, count; i < end; i += count) {
    count = end - i < kShardTile ? end - i : kShardTile;
    sum_shards(to + i, shards, shard_count, i, count);
  }
}

// sum[j] += x[j]^2, j < 16.
DPT_SIMD void add_squares(double* sum, const float* x) {
#if defined(__AVX512F__)
  for (int j = 0; j < 16; j += 8) {
    const __m512d v = _mm512_cvtps_pd(_mm256_loadu_ps(x + j));
    _mm512_storeu_pd(sum + j, _mm512_fmadd_pd(v, v, _mm512_loadu_pd(sum + j)));
  }
#else
  for (int j = 0; j < 16; ++j) {
    const double v = static_cast<double>(x[j]);
    sum[j] += v * v;
  }
#endif
}

// 16 chains on every instruction set, so that the bits are the same. The square of a float is exact
// in double.
void sum_squares(const float* x, size_t size, size_t first_chunk, size_t last_chunk,
                 double* partial) {
  for (size_t c = first_chunk; c < last_chunk; ++c) {
    const size_t begin = c * kSquareChunk;
    const size_t end = size - begin < kSquareChunk ? size : begin + kSquareChunk;
    double sum[16] = {};
    size_t i = begin;
    for (; i + 16 <= end; i += 16) add_squares(sum, x + i);
    for (int j = 0; i < end; ++i, ++j) {
      const double v = static_cast<double>(x[i]);
      sum[j] += v * v;
    }
    for (int step = 8; step > 0; step /= 2)
      for (int j = 0; j < step; ++j) sum[j] += sum[j + step];
    partial[c] = sum[0];
  }
}

}  // namespace

void add_sums(SimdKernels& kernels) {
  kernels.sum_shards_range = sum_shards_range;
  kernels.sum_squares = sum_squares;
}

}  // namespace dpt::DPT_ISA
