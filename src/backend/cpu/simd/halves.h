// Conversions between floats and halves for one CPU core. The rules of simd.h apply. Rounding is to
// nearest, ties to even; the formulas are those of base/half.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/simd.h"

namespace dpt {

// The type to whose numbers floats are rounded.
enum class RoundTo { f32, bf16, f16 };

struct HalfKernels {
  void (*to_bf16)(const float* x, uint16_t* y, size_t n);
  void (*from_bf16)(const uint16_t* x, float* y, size_t n);
  void (*to_f16)(const float* x, uint16_t* y, size_t n);
  void (*from_f16)(const uint16_t* x, float* y, size_t n);
  // Round to numbers of the half, stored as floats; y may be x.
  void (*round_bf16)(const float* x, float* y, size_t n);
  void (*round_f16)(const float* x, float* y, size_t n);
  void (*scale)(const float* x, float scale, float* y, size_t n);
};

// REQUIRES: this CPU has the instruction set.
const HalfKernels& half_simd(Isa isa);

DPT_FOR_EACH_ISA(void add_halves(HalfKernels& kernels))

}  // namespace dpt
