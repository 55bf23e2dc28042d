#include "backend/cpu/update.h"

#include <algorithm>
#include <cmath>

#include "backend/cpu/simd/optimizers.h"
#include "graph/optimizer_step.h"

namespace dpt {
namespace {

// A nan counts as the largest value.
double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }

}  // namespace

void run_update(const OptimizerStep& step, const UpdateArgs& args) {
  std::visit([&](const auto& s) { update(simd_kernels(), args, rounded<float>(s)); }, step);
}

void norm_partials(double norm_type, const float* x, size_t size, size_t first, size_t last,
                   double* partial) {
  if (norm_type == 2) return simd_kernels().sum_squares(x, size, first, last, partial);
  for (size_t c = first; c < last; ++c) {
    double sum = 0;
    for (size_t i = c * kSquareChunk; i < std::min(size, (c + 1) * kSquareChunk); ++i) {
      const double a = std::fabs(x[i]);
      sum = std::isinf(norm_type) ? larger(sum, a) : sum + std::pow(a, norm_type);
    }
    partial[c] = sum;
  }
}

double norm_total(double norm_type, const double* partial, size_t chunks) {
  double sum = 0;
  for (size_t c = 0; c < chunks; ++c)
    sum = std::isinf(norm_type) ? larger(sum, partial[c]) : sum + partial[c];
  if (std::isinf(norm_type)) return sum;
  return norm_type == 2 ? std::sqrt(sum) : std::pow(sum, 1 / norm_type);
}

}  // namespace dpt
