// Reads IDX, the file format of MNIST: two zero bytes, a type code, the number of dimensions, their
// sizes, then the elements, all big-endian (yann.lecun.com, section "FILE FORMATS").
#pragma once

#include <string>

#include "data/dataset.h"

namespace dpt {

// Reads a plain or gzip'ed file with 1 to 4 dimensions. u8 stays u8; i8, i16 and i32 become i32;
// f32 and f64 become f32. Throws Error{data} if the content does not match its header exactly.
//
// Large gzip'ed files are cached decompressed in the user's cache folder (data/readers/cache.h).
Table read_idx(const std::string& path);

// Reads only the header: the type and shape that read_idx() would return.
TensorDesc read_idx_header(const std::string& path);

}  // namespace dpt
