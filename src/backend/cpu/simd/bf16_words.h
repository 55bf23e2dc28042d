// Words of two numbers of bf16, and the instruction that multiplies them. Only for .inc.cpp files,
// see isa.h.
//
// VDPBF16PS adds two products to a sum, that of the upper halves of the words first. Each addition
// is one fma rounded to nearest even; subnormal numbers count as 0. This is Intel's definition
// (Software Developer's Manual, VDPBF16PS), and bf16_products.h checks it. So with the factor of
// the smaller k in the upper half, a sum over k is one chain of fma, with the same bits as with
// floats, on a thread that flushes subnormal numbers (base/flush_subnormals.h).
#pragma once

#include "backend/cpu/simd/lanes.h"

namespace dpt::DPT_ISA {

DPT_SIMD Words upper(Vector v) { return (Words)v & 0xffff0000U; }

// A word of each lane's bf16 numbers: that of `first` in the upper half. REQUIRES: these are
// numbers of bf16.
DPT_SIMD Vector joined(Vector first, Vector second) {
  return (Vector)(upper(first) | ((Words)second >> 16));
}

// The words of 2 * kLanes neighboring factors: [first, second].
DPT_SIMD Vector joined_neighbors(Vector first, Vector second) {
#if defined(__AVX512F__)
  static constexpr uint16_t kUpper[32] = {3,  1,  7,  5,  11, 9,  15, 13, 19, 17, 23,
                                          21, 27, 25, 31, 29, 35, 33, 39, 37, 43, 41,
                                          47, 45, 51, 49, 55, 53, 59, 57, 63, 61};
  return _mm512_castsi512_ps(_mm512_permutex2var_epi16(
      _mm512_castps_si512(first), _mm512_loadu_si512(kUpper), _mm512_castps_si512(second)));
#else
  float both[2 * kLanes];
  store(both, first);
  store(both + kLanes, second);
  Vector even, odd;
  for (int i = 0; i < kLanes; ++i) {
    even[i] = both[2 * i];
    odd[i] = both[2 * i + 1];
  }
  return joined(even, odd);
#endif
}

// Where an odd depth leaves no second factor: 0 in A and -0 here, whose product -0 changes no sum.
DPT_SIMD Vector no_factor() { return (Vector)(Words{} + 0x80000000U); }

// The instruction, and two fma that compute the same.
struct Emulated {
  DPT_SIMD Vector multiply(Vector a, Vector b, Vector sum) {
    sum = fma((Vector)upper(a), (Vector)upper(b), sum);
    return fma((Vector)((Words)a << 16), (Vector)((Words)b << 16), sum);
  }
};
#if defined(__AVX512F__)
// In assembler, since the rest of this library must not use AVX512-BF16.
struct Instruction {
  DPT_SIMD Vector multiply(Vector a, Vector b, Vector sum) {
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
  }
};
#endif

}  // namespace dpt::DPT_ISA
