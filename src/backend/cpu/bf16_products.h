// Whether this CPU's instruction for products of bf16, VDPBF16PS of AVX512-BF16, is used.
//
// The instruction multiplies two pairs of bf16 in each lane. Some CPUs execute as many of them as
// fma, which doubles the speed of products, and others so few that fma is faster. So the CPU is
// measured. The choice changes no bit, since products use the instruction only if it computes what
// two fma compute (simd/bf16_pairs.h).
#pragma once

#include <string>

#include "backend/cpu/simd/gemm.h"
#include "graph/kernel.h"

namespace dpt {

// What the spec says: the faster one, always fma, or always the instruction.
enum class Bf16Products { automatic, fma, instruction };

struct Bf16Probe {
  bool has_instruction = false;
  bool same_bits = false;  // it computed the bits of two fma for all operands that were tried
  double ratio = 0;        // products per second, relative to those of fma

  bool usable() const { return has_instruction && same_bits; }
  // Known CPUs have a ratio of 2 (AMD Zen 4) or at most 1, so a measurement that is a third off
  // does not change the choice.
  bool faster() const { return usable() && ratio >= 1.4; }
};

// Measured at the first call, within about 3 ms. Thread: any.
const Bf16Probe& bf16_probe();

// "VDPBF16PS, 2.0 times the rate of fma". For `dptrain doctor`.
std::string text_of(const Bf16Probe& probe);

// Why products of bf16 do not use the instruction; empty: they do.
std::string refuses_instruction(Bf16Products asked);

// Why a kernel that packs its factors as pairs of bf16 refuses the query; empty: it accepts.
std::string refuses_bf16_pairs(const KernelQuery& query, Bf16Products asked);

// The packed products of this CPU. pairs: those of bf16; REQUIRES: bf16_probe().usable().
const GemmKernels& gemm_of(bool pairs);

}  // namespace dpt
