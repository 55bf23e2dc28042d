#include "data/gather_kernels.h"

#include <algorithm>

namespace dpt {
namespace {

void plain_u8(const uint8_t* rows, const int64_t* index, size_t n, size_t features, float scale,
              float shift, float* x) {
  for (size_t r = 0; r < n; ++r)
    for (size_t i = 0; i < features; ++i)
      *x++ = static_cast<float>(rows[static_cast<size_t>(index[r]) * features + i]) * scale + shift;
}

void plain_u8_table(const uint8_t* rows, const int64_t* index, size_t n, size_t features,
                    const float* table, float* x) {
  for (size_t r = 0; r < n; ++r)
    for (size_t i = 0; i < features; ++i)
      *x++ = table[rows[static_cast<size_t>(index[r]) * features + i]];
}

void plain_copy(const float* rows, const int64_t* index, size_t n, size_t features, float* x) {
  for (size_t r = 0; r < n; ++r)
    x = std::copy_n(rows + static_cast<size_t>(index[r]) * features, features, x);
}

}  // namespace

GatherKernels reference_gathers() {
  return {.u8 = plain_u8, .u8_table = plain_u8_table, .f32 = plain_copy};
}

}  // namespace dpt
