// Number types in GPU memory: float, and the two halves as 16 bits. Kernels compute in float, or in
// double for sums, and round once.
#pragma once

#include "base/half.h"
#include "graph/formulas/formulas.h"

namespace dpt::cuda {

struct Bf16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};

DPT_FORMULA float number(float x) { return x; }
DPT_FORMULA float number(Bf16 x) { return from_bf16(x.bits); }
DPT_FORMULA float number(F16 x) { return from_f16(x.bits); }

DPT_FORMULA float number(uint8_t x) { return x; }

DPT_FORMULA void put(float& to, float x) { to = x; }
DPT_FORMULA void put(Bf16& to, float x) { to.bits = to_bf16(x); }
DPT_FORMULA void put(F16& to, float x) { to.bits = to_f16(x); }
DPT_FORMULA void put(double& to, double x) { to = x; }
// Rounds a double result to the type in memory.
template <class T>
DPT_FORMULA void put(T& to, double x) {
  put(to, static_cast<float>(x));
}

}  // namespace dpt::cuda
