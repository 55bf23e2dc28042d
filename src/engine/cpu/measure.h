// Measures the gradients of a step for `log.grad_norms` and `log.noise_scale`.
#pragma once

#include <cstddef>

#include "session/buffers.h"
#include "session/measure_layout.h"

namespace dpt {

// Sums the squares of chunks [first, last) of `gradients`, a buffer of stored gradients, into that
// row of the measures.
void measure_chunks(const Buffers& buffers, const MeasureLayout& layout, const float* gradients,
                    size_t row, size_t first, size_t last);

}  // namespace dpt
