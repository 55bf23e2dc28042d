// IDX, the format of MNIST and its kin: big-endian, two zero bytes, a type code, the number of
// extents, the extents, then the elements (yann.lecun.com's description, section "FILE FORMATS").
#pragma once

#include <string>

#include "data/dataset.h"

namespace dpt {

// Reads a plain or gzip'ed file of 1 to 4 extents. u8 stays u8; i8, i16 and i32 become i32; f32
// and f64 become f32. Throws Error{data} for anything that is not exactly as its header says.
//
// Large gzip'ed files are kept decompressed in the user's cache folder (data/readers/cache.h).
Table read_idx(const std::string& path);

// The header alone: what read_idx would give.
TensorDesc read_idx_header(const std::string& path);

}  // namespace dpt
