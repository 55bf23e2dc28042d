#include "backend/cpu/simd/halves.h"

#include "backend/cpu/simd/rounding.h"

namespace dpt::DPT_ISA {
namespace {

typedef uint16_t Short __attribute__((vector_size(sizeof(Vector) / 2)));

// The bits of the f16 nearest to a float. Floats in [1/2, 1) are multiples of 2^-24, like the
// subnormals of f16.
DPT_SIMD Words f16_bits(Vector v) {
  const Words x = (Words)rounded_to_f16(v), rest = x & 0x7fffffffU;
  const Words tiny = (Words)((Vector)rest + all(0.5F)) - 0x3f000000U;
  Words out = pick(where((Ints)rest < 0x38800000), tiny, (rest - 0x38000000U) >> 13);
  out = pick(where((Ints)rest >= 0x7f800000), 0x7c00U + ((rest & 0x7fffffU) >> 13), out);
  return out | (x & 0x80000000U) >> 16;
}

DPT_SIMD Words from_f16_bits(Words h) {
  const Words rest = h & 0x7fffU;
  const Words tiny = (Words)((Vector)(rest + 0x3f000000U) - all(0.5F));
  Words out = pick(where((Ints)rest < 0x400), tiny, (rest << 13) + 0x38000000U);
  out = pick(where((Ints)rest >= 0x7c00), 0x7f800000U + ((rest & 0x3ffU) << 13), out);
  return out | (h & 0x8000U) << 16;
}

// bits(x): the bits of the half in the lower 16 bits of each lane.
template <class Bits>
DPT_SIMD void narrow(const float* x, uint16_t* y, size_t n, Bits bits) {
  each_vector(
      n, [&](size_t i, auto at) __attribute__((always_inline)) {
        const Short out = __builtin_convertvector(bits(at.get(x + i).v), Short);
        const size_t left = n - i;
        if (left >= kLanes)
          __builtin_memcpy(y + i, &out, sizeof out);
        else
          for (size_t j = 0; j < left; ++j) y[i + j] = out[j];
      });
}

template <class Floats>
DPT_SIMD void widen(const uint16_t* x, float* y, size_t n, Floats floats) {
  each_vector(
      n, [&](size_t i, auto at) __attribute__((always_inline)) {
        Short bits{};
        const size_t left = n - i;
        if (left >= kLanes)
          __builtin_memcpy(&bits, x + i, sizeof bits);
        else
          for (size_t j = 0; j < left; ++j) bits[j] = x[i + j];
        at.put(y + i, (Vector)floats(__builtin_convertvector(bits, Words)));
      });
}

void to_bf16(const float* x, uint16_t* y, size_t n) {
  narrow(
      x, y, n, [](Vector v) __attribute__((always_inline)) { return bf16_bits((Words)v) >> 16; });
}

void from_bf16(const uint16_t* x, float* y, size_t n) {
  widen(
      x, y, n, [](Words h) __attribute__((always_inline)) { return h << 16; });
}

void to_f16(const float* x, uint16_t* y, size_t n) {
  narrow(
      x, y, n, [](Vector v) __attribute__((always_inline)) { return f16_bits(v); });
}

void from_f16(const uint16_t* x, float* y, size_t n) {
  widen(
      x, y, n, [](Words h) __attribute__((always_inline)) { return from_f16_bits(h); });
}

void round_bf16(const float* x, float* y, size_t n) {
  each_vector(
      n, [&](size_t i, auto at)
             __attribute__((always_inline)) { at.put(y + i, ToBf16{}(at.get(x + i))); });
}

void round_f16(const float* x, float* y, size_t n) {
  each_vector(
      n, [&](size_t i, auto at)
             __attribute__((always_inline)) { at.put(y + i, ToF16{}(at.get(x + i))); });
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
  kernels.to_f16 = to_f16;
  kernels.from_f16 = from_f16;
  kernels.round_bf16 = round_bf16;
  kernels.round_f16 = round_f16;
  kernels.scale = scale;
}

}  // namespace dpt::DPT_ISA
