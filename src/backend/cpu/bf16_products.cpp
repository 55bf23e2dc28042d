#include "backend/cpu/bf16_products.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

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

constexpr size_t kRounds = 2000;  // of a burst: about 15 us
constexpr int kBursts = 60;

double seconds_of(const MultiplyProbe& probe) {
  std::array<float, 2 * kMostLanes> ones;
  ones.fill(std::bit_cast<float>(0x3f803f80U));  // two ones in bf16
  const auto start = std::chrono::steady_clock::now();
  probe.burst(kRounds, ones.data());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

#if defined(__x86_64__) && defined(__linux__)
// Asks for the state of tiles, which Linux gives to a process and all of its threads.
bool may_use_tiles() {
  constexpr unsigned kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  constexpr unsigned kBf16 = 1U << 22, kTiles = 1U << 24;
  return (d & kBf16) != 0 && (d & kTiles) != 0 &&
         syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}
#else
bool may_use_tiles() { return false; }
#endif

constexpr size_t kTileFloats = size_t{32} * 16;

bool computes_right_tiles(const Bf16Kernels& kernels) {
  const FlushSubnormals flush;
  constexpr int kTries = 20;
  Operands operands;
  std::vector<float> a(kTileFloats), b(kTileFloats), sums(2 * kTileFloats);
  for (const auto& [factors, start] : {std::pair(120U, 122U), {56U, 0U}, {180U, 236U}})
    for (int i = 0; i < kTries; ++i) {
      for (auto* side : {&a, &b})
        for (float& x : *side) x = std::bit_cast<float>(operands.word(factors));
      for (float& x : sums) x = operands.number(start);
      std::vector<float> expected = sums;
      kernels.tiles.multiply(a.data(), b.data(), sums.data(), 1);
      kernels.emulated_tiles.multiply(a.data(), b.data(), expected.data(), 1);
      if (!std::ranges::equal(sums, expected, same)) return false;
    }
  return true;
}

double products_per_second_of_tiles(const Bf16Kernels& kernels) {
  constexpr size_t kTileRounds = 300;  // about 20 us
  constexpr double kProducts = 32 * 32 * 32;
  std::vector<float> a(kTileFloats), b(kTileFloats), sums(2 * kTileFloats);
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 30; ++i) {
    const auto start = std::chrono::steady_clock::now();
    kernels.tiles.multiply(a.data(), b.data(), sums.data(), kTileRounds);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count());
  }
  return kTileRounds * kProducts / best;
}

// Other load only makes bursts longer, so the shortest of many counts.
void measure(const Bf16Kernels& kernels, Bf16Probe& probe) {
  constexpr double kProductsPerLane = 2;
  const auto products_of_fma = static_cast<double>(kRounds * kernels.probe_fma.words);
  double instruction = std::numeric_limits<double>::infinity(), fma = instruction;
  for (int i = 0; i < kBursts; ++i) {
    instruction = std::min(instruction, seconds_of(kernels.probe_instruction));
    fma = std::min(fma, seconds_of(kernels.probe_fma));
  }
  probe.ratio = kProductsPerLane * fma / instruction;
  if (probe.tiles_usable())
    probe.tiles_ratio = products_per_second_of_tiles(kernels) * fma / products_of_fma;
}

}  // namespace

double fma_flops() {
  const MultiplyProbe& probe = bf16_simd(simd_kernels().isa).probe_fma;
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kBursts; ++i) best = std::min(best, seconds_of(probe));
  constexpr double kFlopsOfFma = 2;
  return kFlopsOfFma * static_cast<double>(kRounds * probe.words) / best;
}

const Bf16Probe& bf16_probe() {
  static const Bf16Probe probe = [] {
    Bf16Probe out{.has_instruction = computes_in(DType::bf16)};
    if (!out.has_instruction) return out;
    const Bf16Kernels& kernels = bf16_simd(Isa::avx512);
    out.same_bits = computes_same_bits(kernels);
    out.has_tiles = may_use_tiles();
    out.right_tiles = out.has_tiles && computes_right_tiles(kernels);
    measure(kernels, out);
    return out;
  }();
  return probe;
}

std::string text_of(const Bf16Probe& probe) {
  if (!probe.has_instruction) return "this CPU has no AVX512-BF16; products use fma";
  const auto other = [](bool expected) { return expected ? "" : " but rounds in another way"; };
  std::string out = fmt::format("VDPBF16PS multiplies {:.1f} times as fast as fma{}", probe.ratio,
                                other(probe.same_bits));
  if (probe.tiles_usable())
    out += fmt::format(", AMX {:.1f} times", probe.tiles_ratio);
  else if (probe.has_tiles)
    out += ", AMX does not compute what its definition says";
  return out + fmt::format("; products use {}", probe.tiles_faster() ? "AMX"
                                                : !probe.faster()    ? "fma"
                                                : probe.has_tiles    ? "VDPBF16PS"
                                                                     : "it");
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

std::string refuses_tiles(Bf16Products asked) {
  if (asked == Bf16Products::fma) return "the spec asks for fma";
  if (asked == Bf16Products::instruction) return "the spec asks for VDPBF16PS";
  const Bf16Probe& probe = bf16_probe();
  if (!probe.has_tiles) return "this CPU has no AMX, or the system does not permit it";
  if (!probe.right_tiles) return "AMX of this CPU does not compute what its definition says";
  return probe.tiles_faster() ? "" : "AMX of this CPU is not the fastest instruction";
}

std::string refuses_bf16_tiles(const KernelQuery& query, Bf16Products asked) {
  if (query.rounded_inputs != DType::bf16) return "its factors are not numbers of bf16";
  if (std::string reason = not_f32(query.in[0]); !reason.empty()) return reason;
  return refuses_tiles(asked);
}

const GemmKernels& gemm_of(Factors factors) {
  const Isa isa = simd_kernels().isa;
  if (factors == Factors::tiles) return bf16_simd(isa).tiles.products;
  return factors == Factors::pairs ? bf16_simd(isa).instruction : gemm_simd(isa);
}

}  // namespace dpt
