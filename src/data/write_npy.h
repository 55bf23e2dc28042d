// Writes tables as NPY files, which numpy.load and read_npy() read.
#pragma once

#include <cstdint>
#include <string>

#include "data/dataset.h"

namespace dpt {

// Writes the first `samples` samples of `table` as one array of version 1.0, in C order: u8 as |u1,
// i32 as <i4, f32 as <f4. If `reader` is given, it makes the samples, and the table only has their
// shape. Replaces the file. Holds one sample in memory. Throws Error{failed} if the file cannot be
// written.
void write_npy(const std::string& path, const Table& table, const SampleReader* reader,
               int64_t samples);

}  // namespace dpt
