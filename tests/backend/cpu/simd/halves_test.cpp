#include "backend/cpu/simd/halves.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/simd/isas.h"
#include "base/half.h"

namespace dpt {
namespace {

// Every exponent, with fractions around the positions where halves round, and what is no number.
std::vector<float> numbers() {
  std::vector<float> out;
  for (uint32_t top = 0; top < 512; ++top)  // sign and exponent
    for (uint32_t fraction : {0U, 1U, 0x7fffU, 0x8000U, 0x8001U, 0x18000U, 0xfffU, 0x1000U, 0x1001U,
                              0x3000U, 0x7fffffU, 0x7ff000U, 0x7f8000U, 0x400000U, 0x2aaaaaU})
      out.push_back(std::bit_cast<float>(top << 23 | fraction));
  for (int i = 0; i < 4096; ++i)  // subnormals of f16, and ties between them
    out.push_back(static_cast<float>(i) * 0x1p-27F);
  return out;
}

bool same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

}  // namespace

TEST_CASE("conversions to halves have the bits of the formulas, on every instruction set") {
  const std::vector<float> x = numbers();
  for (const SimdKernels* isa : isas_of_this_cpu()) {
    CAPTURE(isa->name);
    const HalfKernels& k = half_simd(isa->isa);
    // Sizes with every rest of a vector; behind them room that no kernel may touch.
    for (const size_t n : {x.size(), x.size() - 1, size_t{1}, size_t{0}, size_t{19}, size_t{31}}) {
      CAPTURE(n);
      std::vector<float> rounded(n + 16, -7), half(n + 16, -7), wide(n + 16, -7);
      std::vector<float> wide_f16(n + 16, -7);
      std::vector<uint16_t> bits(n + 16, 7), bits_f16(n + 16, 7);
      k.round_bf16(x.data(), rounded.data(), n);
      k.round_f16(x.data(), half.data(), n);
      k.to_bf16(x.data(), bits.data(), n);
      k.from_bf16(bits.data(), wide.data(), n);
      k.to_f16(x.data(), bits_f16.data(), n);
      k.from_f16(bits_f16.data(), wide_f16.data(), n);
      for (size_t i = 0; i < n; ++i) {
        INFO("of ", x[i], " bits ", std::bit_cast<uint32_t>(x[i]));
        REQUIRE(same(rounded[i], rounded_to(DType::bf16, x[i])));
        REQUIRE(same(half[i], rounded_to(DType::f16, x[i])));
        REQUIRE(same(wide[i], rounded[i]));
        REQUIRE(same(wide_f16[i], half[i]));
        if (!std::isnan(x[i])) REQUIRE(bits[i] == to_bf16(x[i]));
        if (!std::isnan(x[i])) REQUIRE(bits_f16[i] == to_f16(x[i]));
      }
      for (size_t i = n; i < n + 16; ++i)
        REQUIRE((rounded[i] == -7 && half[i] == -7 && wide[i] == -7 && wide_f16[i] == -7 &&
                 bits[i] == 7 && bits_f16[i] == 7));
    }
  }
}

TEST_CASE("a scale multiplies every element") {
  for (const SimdKernels* isa : isas_of_this_cpu()) {
    std::vector<float> x(37), y(37);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) - 11;
    half_simd(isa->isa).scale(x.data(), 65536, y.data(), x.size());
    for (size_t i = 0; i < x.size(); ++i) REQUIRE(y[i] == x[i] * 65536);
  }
}

}  // namespace dpt
