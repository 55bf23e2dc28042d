// Whether this CPU's instructions for products of bf16 are used: VDPBF16PS of AVX512-BF16, and
// TDPBF16PS of AMX.
//
// The instruction multiplies two pairs of bf16 in each lane. Some CPUs execute as many of them as
// fma, which doubles the speed of products, and others so few that fma is faster. So the CPU is
// measured. The choice changes no bit, since products use the instruction only if it computes what
// two fma compute (simd/bf16_pairs.h).
//
// TDPBF16PS multiplies tiles of 16 x 32 bf16 and is measured likewise. It adds in another order
// (simd/amx_tiles.h), so it counts as an instruction set of its own: results are the same on all
// CPUs that use it. It is only used if it computes the bits of that order.
#pragma once

#include <string>

#include "backend/cpu/simd/gemm.h"
#include "graph/kernel.h"

namespace dpt {

// What the spec says: the fastest one, always fma, or always VDPBF16PS.
enum class Bf16Products { automatic, fma, instruction };

struct Bf16Probe {
  bool has_instruction = false;
  bool same_bits = false;  // it computed the bits of two fma for all operands that were tried
  double ratio = 0;        // products per second, relative to those of fma
  bool has_tiles = false;  // AMX-BF16, and the system permits this process to use it
  bool right_tiles = false;
  double tiles_ratio = 0;

  bool usable() const { return has_instruction && same_bits; }
  bool tiles_usable() const { return has_tiles && right_tiles; }
  // Known CPUs with AMX have a ratio of 14.
  bool tiles_faster() const {
    return tiles_usable() && tiles_ratio >= 1.4 * (faster() ? ratio : 1);
  }
  // Known CPUs have a ratio of 2 (AMD Zen 4) or at most 1, so a measurement that is a third off
  // does not change the choice.
  bool faster() const { return usable() && ratio >= 1.4; }
};

// Measured at the first call, within about 3 ms. Thread: any.
const Bf16Probe& bf16_probe();

// The rate of this core's fma in FLOP/s: the best of several bursts, together about 1 ms. REQUIRES:
// AVX2 or AVX-512, or this takes a second. Thread: any.
double fma_flops();

// "VDPBF16PS, 2.0 times the rate of fma". For `dptrain doctor`.
std::string text_of(const Bf16Probe& probe);

// Why products of bf16 do not use the instruction; empty: they do.
std::string refuses_instruction(Bf16Products asked);

// Why products of bf16 do not use tiles; empty: they do.
std::string refuses_tiles(Bf16Products asked);

// Why a kernel that packs its factors as pairs of bf16 refuses the query; empty: it accepts.
std::string refuses_bf16_pairs(const KernelQuery& query, Bf16Products asked);
std::string refuses_bf16_tiles(const KernelQuery& query, Bf16Products asked);

// How packed factors are multiplied.
enum class Factors { floats, pairs, tiles };
// The packed products of this CPU. REQUIRES: pairs: bf16_probe().usable(); tiles: tiles_usable().
const GemmKernels& gemm_of(Factors factors);

}  // namespace dpt
