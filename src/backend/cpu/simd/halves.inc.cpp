#include "backend/cpu/simd/halves.h"

#include "backend/cpu/simd/lanes.h"

namespace dpt::DPT_ISA {
namespace {

typedef uint16_t Short __attribute__((vector_size(sizeof(Vector) / 2)));

// All bits of a lane where it holds.
DPT_SIMD Words where(Ints condition) { return (Words)condition; }
DPT_SIMD Words pick(Words which, Words a, Words b) { return (which & a) | (~which & b); }

// The 16 upper bits are the bf16, the lower ones 0.
DPT_SIMD Words bf16_bits(Words x) {
  const Words nan = where((Ints)(x & 0x7fffffffU) > 0x7f800000);
  const Words rounded = x + 0x7fffU + ((x >> 16) & 1U);
  return pick(nan, x | 0x400000U, rounded) & 0xffff0000U;
}

DPT_SIMD Vector rounded_to_f16(Vector v) {
  const Words x = (Words)v, sign = x & 0x80000000U, rest = x & 0x7fffffffU;
  const Words normal = (rest + 0xfffU + ((rest >> 13) & 1U)) & ~0x1fffU;
  // Between 1/2 and 1 floats are multiples of 2^-24, as the subnormals of f16.
  const Words tiny = (Words)(((Vector)rest + all(0.5F)) - all(0.5F));
  Words out = pick(where((Ints)rest < 0x38800000), tiny, normal);
  out = pick(where((Ints)rest >= 0x477ff000), Words{} + 0x7f800000U, out);
  out = pick(where((Ints)rest > 0x7f800000), Words{} + 0x7fc00000U, out);
  return (Vector)(out | sign);
}

void to_bf16(const float* x, uint16_t* y, size_t n) {
  each_vector(
      n, [&](size_t i, auto at) __attribute__((always_inline)) {
        const Words bits = bf16_bits((Words)at.get(x + i).v) >> 16;
        const Short narrow = __builtin_convertvector(bits, Short);
        const size_t left = n - i;
        if (left >= kLanes)
          __builtin_memcpy(y + i, &narrow, sizeof narrow);
        else
          for (size_t j = 0; j < left; ++j) y[i + j] = narrow[j];
      });
}

void from_bf16(const uint16_t* x, float* y, size_t n) {
  each_vector(
      n, [&](size_t i, auto at) __attribute__((always_inline)) {
        Short bits{};
        const size_t left = n - i;
        if (left >= kLanes)
          __builtin_memcpy(&bits, x + i, sizeof bits);
        else
          for (size_t j = 0; j < left; ++j) bits[j] = x[i + j];
        at.put(y + i, (Vector)(__builtin_convertvector(bits, Words) << 16));
      });
}

void round_bf16(const float* x, float* y, size_t n) {
  each_vector(
      n, [&](size_t i, auto at) __attribute__((always_inline)) {
        at.put(y + i, (Vector)bf16_bits((Words)at.get(x + i).v));
      });
}

void round_f16(const float* x, float* y, size_t n) {
  each_vector(
      n, [&](size_t i, auto at)
             __attribute__((always_inline)) { at.put(y + i, rounded_to_f16(at.get(x + i).v)); });
}

void scale(const float* x, float scale, float* y, size_t n) {
  each_vector(
      n, [&](size_t i, auto at)
             __attribute__((always_inline)) { at.put(y + i, at.get(x + i) * Lanes(all(scale))); });
}

}  // namespace

void add_halves(HalfKernels& kernels) {
  kernels.to_bf16 = to_bf16;
  kernels.from_bf16 = from_bf16;
  kernels.round_bf16 = round_bf16;
  kernels.round_f16 = round_f16;
  kernels.scale = scale;
}

}  // namespace dpt::DPT_ISA
