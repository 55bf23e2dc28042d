// Rounds floats to numbers of a half, before they are stored as floats. Only for .inc.cpp files,
// see isa.h.
#pragma once

#include "backend/cpu/simd/halves.h"
#include "backend/cpu/simd/lanes.h"

namespace dpt::DPT_ISA {

// All bits of the lanes where the condition holds.
DPT_SIMD Words where(Ints condition) { return (Words)condition; }
DPT_SIMD Words pick(Words which, Words a, Words b) { return (which & a) | (~which & b); }

// The upper 16 bits are the bf16; the lower bits are 0.
DPT_SIMD Words bf16_bits(Words x) {
  const Words nan = where((Ints)(x & 0x7fffffffU) > 0x7f800000);
  const Words rounded = x + 0x7fffU + ((x >> 16) & 1U);
  return pick(nan, x | 0x400000U, rounded) & 0xffff0000U;
}

DPT_SIMD Vector rounded_to_f16(Vector v) {
  const Words x = (Words)v, sign = x & 0x80000000U, rest = x & 0x7fffffffU;
  const Words normal = (rest + 0xfffU + ((rest >> 13) & 1U)) & ~0x1fffU;
  // Floats in [1/2, 1) are multiples of 2^-24, like the subnormals of f16.
  const Words tiny = (Words)(((Vector)rest + all(0.5F)) - all(0.5F));
  Words out = pick(where((Ints)rest < 0x38800000), tiny, normal);
  out = pick(where((Ints)rest >= 0x477ff000), Words{} + 0x7f800000U, out);
  out = pick(where((Ints)rest > 0x7f800000), Words{} + 0x7fc00000U, out);
  return (Vector)(out | sign);
}

struct Exact {
  [[gnu::always_inline]] Lanes operator()(Lanes x) const { return x; }
};
struct ToBf16 {
  [[gnu::always_inline]] Lanes operator()(Lanes x) const { return (Vector)bf16_bits((Words)x.v); }
};

struct ToF16 {
  [[gnu::always_inline]] Lanes operator()(Lanes x) const { return rounded_to_f16(x.v); }
};

// Calls f with Exact, ToBf16 or ToF16.
template <class F>
DPT_SIMD void with_rounding(RoundTo to, F f) {
  if (to == RoundTo::bf16)
    f(ToBf16{});
  else if (to == RoundTo::f16)
    f(ToF16{});
  else
    f(Exact{});
}

}  // namespace dpt::DPT_ISA
