// In which order linear (simd.h) sums, for those who make the same bits in another way.
#pragma once

#include <stddef.h>

#include "backend/cpu/simd/isa.h"

namespace dpt {

// Whether each of its sums is one chain over k, as matmul's: where transposing w costs less, 10 /
// usual_n of the time, than sums over lanes, 45 / in. REQUIRES: out > 16; what is narrower than a
// vector, whose panels would be mostly empty, is never chains.
DPT_SIMD constexpr bool linear_is_chains(size_t usual_n, size_t in) {
  return usual_n * 9 > in * 2 && in > 0;
}

}  // namespace dpt
