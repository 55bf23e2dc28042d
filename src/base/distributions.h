// Words of a random number generator as uniform and normal values: PyTorch's, bit for bit, as its
// code for CPUs with AVX2 or AVX-512 computes them.
#pragma once

#include <cstdint>
#include <span>

namespace dpt {

// Values in [low, high), one for each word. REQUIRES: out.size() == words.size().
void uniform_values(std::span<const uint32_t> words, float low, float high, std::span<float> out);

// Box-Muller transform in place of uniform values in [0, 1): in each block of 16, elements j and
// j + 8 form a pair. REQUIRES: a multiple of 16 values.
void normal_values(std::span<float> values, float mean, float sd);

}  // namespace dpt
