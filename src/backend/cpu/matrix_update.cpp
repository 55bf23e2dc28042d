#include "backend/cpu/matrix_update.h"

#include <algorithm>
#include <cmath>

#include "backend/cpu/bf16_products.h"
#include "backend/cpu/scratch.h"
#include "backend/cpu/simd/simd.h"

namespace dpt {
namespace {

// c [rows, columns] = a [rows, depth] b; b is [depth, columns], or [columns, depth] if transposed.
void multiply(const float* a, const float* b, bool b_transposed, float* c, size_t rows,
              size_t depth, size_t columns) {
  const RowPairs all{.count = rows};
  gemm_of(Factors::floats)
      .row_product({.taps = &all,
                    .tap_count = 1,
                    .depth = depth,
                    .columns = columns,
                    .a = a,
                    .b = b,
                    .b_transposed = b_transposed,
                    .c = c,
                    .adds = false,
                    .chain = false,
                    .to = RoundTo::f32},
                   gemm_workspace());
}

void transpose(const float* x, size_t rows, size_t columns, float* y) {
  constexpr size_t kTile = 16;  // rows, so that a cache line of y is written at once
  for (size_t r = 0; r < rows; r += kTile)
    for (size_t c = 0; c < columns; ++c)
      for (size_t i = r; i < std::min(rows, r + kTile); ++i) y[c * rows + i] = x[i * columns + c];
}

// In the order of the chunks of sum_squares, whose bits are the same on every instruction set.
float norm_of(const float* x, size_t count) {
  double sum = 0;
  for (size_t at = 0; at < count; at += kSquareChunk) {
    double part = 0;
    simd_kernels().sum_squares(x + at, std::min(kSquareChunk, count - at), 0, 1, &part);
    sum += part;
  }
  return static_cast<float>(std::sqrt(sum));
}

}  // namespace

size_t orthogonal_workspace(int64_t rows, int64_t columns) {
  const auto m = static_cast<size_t>(std::min(rows, columns));
  return 2 * static_cast<size_t>(rows * columns) + 2 * m * m;
}

void make_orthogonal(const formula::Muon<float>& s, float* x, int64_t rows, int64_t columns,
                     float* workspace) {
  const auto count = static_cast<size_t>(rows * columns);
  const auto m = static_cast<size_t>(std::min(rows, columns));
  const auto n = static_cast<size_t>(std::max(rows, columns));
  float* const wide = workspace;  // [m, n]
  float* const product = wide + count;
  float* const gram = product + count;  // [m, m], as `factor`
  float* const factor = gram + m * m;
  if (rows > columns)
    transpose(x, n, m, wide);
  else
    std::copy_n(x, count, wide);
  float norm = norm_of(x, count);
  norm = norm < s.eps ? s.eps : norm;  // a nan remains a nan
  for (size_t i = 0; i < count; ++i) wide[i] /= norm;
  for (int step = 0; step < s.steps; ++step) {
    multiply(wide, wide, true, gram, m, n, m);
    multiply(gram, gram, false, factor, m, m, m);
    for (size_t i = 0; i < m * m; ++i) factor[i] = s.b * gram[i] + s.c * factor[i];
    multiply(factor, wide, false, product, m, m, n);
    for (size_t i = 0; i < count; ++i) wide[i] = s.a * wide[i] + product[i];
  }
  if (rows > columns)
    transpose(wide, m, n, x);
  else
    std::copy_n(wide, count, x);
}

double step_size(const formula::Muon<double>& s, int64_t rows, int64_t columns) {
  const auto a = static_cast<double>(rows), b = static_cast<double>(columns);
  return s.lr * (s.match_rms ? 0.2 * std::sqrt(std::max(a, b)) : std::sqrt(std::max(1.0, a / b)));
}

}  // namespace dpt
