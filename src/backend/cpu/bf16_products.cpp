#include "backend/cpu/bf16_products.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>

#include <fmt/format.h>

#include "backend/cpu/half_kernels.h"
#include "backend/cpu/simd/bf16_gemm.h"
#include "backend/cpu/support.h"
#include "base/flush_subnormals.h"

namespace dpt {
namespace {

// A small generator (Knuth, MMIX), so that every process tries the same operands.
class Operands {
 public:
  uint32_t next() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<uint32_t>(state_ >> 32);
  }
  // Two bf16, or a float, with exponents between `low` and `low` + 15.
  uint32_t word(uint32_t low) { return bf16(low) << 16 | bf16(low); }
  float number(uint32_t low) {
    return std::bit_cast<float>((next() & 0x807fffffU) | (low + next() % 16) << 23);
  }

 private:
  uint32_t bf16(uint32_t low) { return (next() & 0x807fU) | (low + next() % 16) << 7; }
  uint64_t state_ = 1;
};

bool same(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

// Exponents around 1, at the lower end, where results are flushed to 0, and at the upper end.
bool computes_same_bits(const Bf16Kernels& kernels) {
  const FlushSubnormals flush;
  constexpr int kTries = 500;
  Operands operands;
  for (const auto& [factors, sums] : {std::pair(120U, 122U), {56U, 0U}, {182U, 238U}})
    for (int i = 0; i < kTries; ++i) {
      std::array<float, kMostLanes> a, b, sum, expected;
      for (size_t l = 0; l < kMostLanes; ++l) {
        a[l] = std::bit_cast<float>(operands.word(factors));
        b[l] = std::bit_cast<float>(operands.word(factors));
        sum[l] = expected[l] = operands.number(sums);
      }
      kernels.probe_instruction.multiply(a.data(), b.data(), sum.data());
      kernels.probe_emulated.multiply(a.data(), b.data(), expected.data());
      if (!std::ranges::equal(sum, expected, same)) return false;
    }
  return true;
}

double seconds_of(const MultiplyProbe& probe) {
  constexpr size_t kRounds = 2000;  // about 15 us
  std::array<float, 2 * kMostLanes> ones;
  ones.fill(std::bit_cast<float>(0x3f803f80U));  // two ones in bf16
  const auto start = std::chrono::steady_clock::now();
  probe.burst(kRounds, ones.data());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Other load only makes bursts longer, so the shortest of many counts.
double measured_ratio(const Bf16Kernels& kernels) {
  constexpr int kBursts = 60;
  constexpr double kProductsPerLane = 2;
  double instruction = std::numeric_limits<double>::infinity(), fma = instruction;
  for (int i = 0; i < kBursts; ++i) {
    instruction = std::min(instruction, seconds_of(kernels.probe_instruction));
    fma = std::min(fma, seconds_of(kernels.probe_fma));
  }
  return kProductsPerLane * fma / instruction;
}

}  // namespace

const Bf16Probe& bf16_probe() {
  static const Bf16Probe probe = [] {
    Bf16Probe out{.has_instruction = computes_in(DType::bf16)};
    if (!out.has_instruction) return out;
    const Bf16Kernels& kernels = bf16_simd(Isa::avx512);
    out.same_bits = computes_same_bits(kernels);
    out.ratio = measured_ratio(kernels);
    return out;
  }();
  return probe;
}

std::string text_of(const Bf16Probe& probe) {
  if (!probe.has_instruction) return "this CPU has no AVX512-BF16; products use fma";
  return fmt::format("VDPBF16PS multiplies {:.1f} times as fast as fma{}; products use {}",
                     probe.ratio, probe.same_bits ? "" : " but rounds in another way",
                     probe.faster() ? "it" : "fma");
}

std::string refuses_instruction(Bf16Products asked) {
  if (asked == Bf16Products::fma) return "the spec asks for fma";
  if (!computes_in(DType::bf16)) return "this CPU has no AVX512-BF16";
  const Bf16Probe& probe = bf16_probe();
  if (!probe.same_bits) return "VDPBF16PS of this CPU rounds in another way";
  if (asked == Bf16Products::automatic && !probe.faster())
    return fmt::format("VDPBF16PS of this CPU multiplies {:.1f} times as fast as fma", probe.ratio);
  return "";
}

std::string refuses_bf16_pairs(const KernelQuery& query, Bf16Products asked) {
  if (query.rounded_inputs != DType::bf16) return "its factors are not numbers of bf16";
  if (std::string reason = not_f32(query.in[0]); !reason.empty()) return reason;
  return refuses_instruction(asked);
}

const GemmKernels& gemm_of(bool pairs) {
  const Isa isa = simd_kernels().isa;
  return pairs ? bf16_simd(isa).instruction : gemm_simd(isa);
}

}  // namespace dpt
