// Standardization of arrays of numbers: (x - mean) / std in double, rounded to float32 last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace dpt {

// How many scalings samples of this shape have: one for each index of the first dimension, which is
// a column or a channel; a single one for samples [].
size_t scaled_channels(const Shape& sample);

// The scalings by the rows that are trained on; empty rows: all. values: [rows, sample]. A constant
// channel is only shifted. Throws Error{data} with `path` if a number is not finite.
std::vector<ChannelScaling> fit_channels(std::span<const double> values, const Shape& sample,
                                         std::span<const uint32_t> rows, const std::string& path);

// f32 of the same shape. REQUIRES: scaled_channels() scalings, or one.
Table scaled(std::span<const double> values, const Shape& shape,
             std::span<const ChannelScaling> channels);

}  // namespace dpt
