// The loops that gather rows of a data set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dpt {

// Loops that a backend may provide faster versions of; the defaults are reference implementations
// with the same bits. Rows have `features` elements, x is [n, features]. The signatures are those
// of SimdKernels.
struct GatherKernels {
  // x[r, i] = float(rows[index[r], i]) * scale + shift, rounded after each operation.
  void (*u8)(const uint8_t* rows, const int64_t* index, size_t n, size_t features, float scale,
             float shift, float* x);
  // x[r, i] = table[rows[index[r], i]]; the table has 256 floats.
  void (*u8_table)(const uint8_t* rows, const int64_t* index, size_t n, size_t features,
                   const float* table, float* x);
  // x[r, i] = rows[index[r], i].
  void (*f32)(const float* rows, const int64_t* index, size_t n, size_t features, float* x);
};
GatherKernels reference_gathers();

}  // namespace dpt
