// Conversions of the two 16-bit floating-point types: bf16 (bfloat16: 8 bits of exponent, 7 of
// fraction) and f16 (IEEE 754 binary16: 5 and 10). Values are stored as uint16_t; arithmetic is in
// float. constexpr, so that CUDA kernels may call these functions.
#pragma once

#include <bit>
#include <cstdint>

#include "base/tensor.h"

namespace dpt {

inline bool is_half(DType t) { return t == DType::bf16 || t == DType::f16; }

constexpr float from_bf16(uint16_t h) {
  return std::bit_cast<float>(static_cast<uint32_t>(h) << 16);
}

// Rounds to nearest, ties to even, like all conversions here. NaN stays NaN.
constexpr uint16_t to_bf16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<uint16_t>((bits >> 16) | 0x40U);
  return static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

constexpr float from_f16(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000U) << 16;
  const uint32_t rest = h & 0x7fffU;
  if (rest >= 0x7c00U)  // infinity and NaN
    return std::bit_cast<float>(sign | 0x7f800000U | ((rest & 0x3ffU) << 13));
  if (rest < 0x400U) {  // zero and subnormals: multiples of 2^-24
    const float x = static_cast<float>(rest) * 0x1p-24F;
    return sign != 0 ? -x : x;
  }
  return std::bit_cast<float>(sign | ((rest << 13) + 0x38000000U));
}

constexpr uint16_t to_f16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000U);
  const uint32_t rest = bits & 0x7fffffffU;
  if (rest > 0x7f800000U) return static_cast<uint16_t>(sign | 0x7e00U);
  if (rest >= 0x477ff000U) return static_cast<uint16_t>(sign | 0x7c00U);  // 65520 rounds up
  if (rest < 0x38800000U)  // Below 2^-14, a multiple of 2^-24. Adding 2^23 rounds to an integer.
    return static_cast<uint16_t>(
        sign | static_cast<uint16_t>(std::bit_cast<float>(rest) * 0x1p24F + 0x1p23F - 0x1p23F));
  return static_cast<uint16_t>(sign | ((rest - 0x38000000U + 0xfffU + ((rest >> 13) & 1U)) >> 13));
}

// x rounded to the type's precision. REQUIRES: t is f32, bf16 or f16.
constexpr float rounded_to(DType t, float x) {
  if (t == DType::bf16) return from_bf16(to_bf16(x));
  return t == DType::f16 ? from_f16(to_f16(x)) : x;
}

}  // namespace dpt
