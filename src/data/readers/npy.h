// NPY, numpy's file of one array (numpy's "NEP 1", versions 1 to 3).
#pragma once

#include <string>

#include "data/dataset.h"

namespace dpt {

// Reads an array of rank 1 to 6 in C order, little-endian, plain or gzip'ed: f4 and f8 become f32;
// i4 and i8 become i32 (a number that does not fit is an error); u1 and b1 become u8. Throws
// Error{data} for anything that is not exactly as its header says. NPZ archives are refused.
Table read_npy(const std::string& path);

}  // namespace dpt
