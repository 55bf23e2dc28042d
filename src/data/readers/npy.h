// Reads NPY, NumPy's file format for one array (NEP 1, versions 1 to 3).
#pragma once

#include <string>
#include <vector>

#include "data/dataset.h"

namespace dpt {

// Reads an array of rank 1 to 6, in C or Fortran order, little- or big-endian, plain or gzip'ed.
// The table is in C order: f2, f4 and f8 become f32; i1, i2, i4, i8, u2, u4 and u8 become i32
// (Error{data} if a number does not fit); u1 and b1 become u8. Throws
// Error{data} if the content does not match its header exactly. NPZ archives are refused.
Table read_npy(const std::string& path);

// The same for an array of floats, without rounding: in C order. Empty: it holds integers.
struct NpyValues {
  Shape shape;
  std::vector<double> values;
};
NpyValues read_npy_values(const std::string& path);

// What read_npy() returns, by the header. Throws likewise if that is wrong.
TensorDesc npy_desc(const std::string& path);

}  // namespace dpt
