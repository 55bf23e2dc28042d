// The order in which linear (simd.h) sums, for code that has to compute the same bits in another
// way.
#pragma once

#include <stddef.h>

#include "backend/cpu/simd/isa.h"

namespace dpt {

// True if each sum of linear is one chain over k, like matmul's. This is the case if transposing w,
// which costs 10 / usual_n of the time, is cheaper than sums over lanes, which cost 45 / in.
// REQUIRES: out > 16. Smaller layers, whose panels would be mostly empty, never use chains.
DPT_SIMD constexpr bool linear_is_chains(size_t usual_n, size_t in) {
  return usual_n * 9 > in * 2 && in > 0;
}

}  // namespace dpt
