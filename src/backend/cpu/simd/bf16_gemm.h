// The products of gemm.h for factors that are numbers of bf16, stored as floats. The rules of
// simd.h apply.
//
// Operands are packed as pairs of bf16, which AVX512-BF16 multiplies with one instruction. Results
// have the bits of gemm.h on threads that flush subnormal numbers, see bf16_pairs.h.
#pragma once

#include <cstddef>

#include "backend/cpu/simd/gemm.h"
#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/simd.h"

namespace dpt {

constexpr size_t kMostLanes = 16;

// What a CPU is measured with (bf16_products.h).
struct MultiplyProbe {
  // sum[i] += the products of the words a[i] and b[i], i < kMostLanes.
  void (*multiply)(const float* a, const float* b, float* sum);
  // Multiplies and adds `words` words in independent chains, `rounds` times.
  void (*burst)(size_t rounds, float* sink);
  size_t words = 0;
};

// Products by tiles of AMX-BF16 (amx_tiles.h). Sums are added in another order than chains of fma:
// in groups of 32 factors of the depth, each of which is the sum of two chains, over its factors
// of even and of odd index. `chain` is ignored.
struct TileKernels {
  // REQUIRES: one tap, without tables of rows.
  GemmKernels products;
  // sums [32, 32] += a [32, 16 words] b [16 words, 32], `rounds` times.
  void (*multiply)(const float* a, const float* b, float* sums, size_t rounds);
};

struct Bf16Kernels {
  GemmKernels instruction;  // REQUIRES: AVX512-BF16; null below AVX-512
  GemmKernels emulated;     // the same with fma; for tests
  MultiplyProbe probe_instruction, probe_emulated, probe_fma;
  TileKernels tiles;           // REQUIRES: may_use_tiles(); null below AVX-512
  TileKernels emulated_tiles;  // the same by fma; for tests
};

// REQUIRES: this CPU has the instruction set.
const Bf16Kernels& bf16_simd(Isa isa);

DPT_FOR_EACH_ISA(void add_bf16(Bf16Kernels& kernels))
DPT_FOR_EACH_ISA(void add_tiles(Bf16Kernels& kernels))

}  // namespace dpt
