#include "backend/cpu/simd/bf16_gemm.h"

#include "backend/cpu/simd/bf16_pairs.h"

namespace dpt::DPT_ISA {
namespace {

template <class Factors>
void multiply_once(const float* a, const float* b, float* sum) {
  for (size_t i = 0; i < kMostLanes; i += kLanes)
    store(sum + i, Factors::multiply(load(a + i), load(b + i), load(sum + i)));
}

// Enough chains to hide the latency of any of these instructions; they and the factors fit the
// registers.
constexpr size_t kProbeChains = kLanes == 16 ? 24 : 12;

template <class Factors>
void burst(size_t rounds, float* sink) {
  Vector sum[kProbeChains];
  DPT_UNROLL
  for (size_t i = 0; i < kProbeChains; ++i) sum[i] = all(static_cast<float>(i));
  const Vector a = load(sink), b = load(sink + kLanes);
  for (; rounds > 0; --rounds) {
    DPT_UNROLL
    for (size_t i = 0; i < kProbeChains; ++i) sum[i] = Factors::multiply(a, b, sum[i]);
  }
  DPT_UNROLL
  for (size_t i = 1; i < kProbeChains; ++i) sum[0] = add(sum[0], sum[i]);
  store(sink, sum[0]);
}

template <class Factors>
MultiplyProbe probe() {
  return {
      .multiply = multiply_once<Factors>, .burst = burst<Factors>, .words = kProbeChains * kLanes};
}

template <class Factors>
GemmKernels gemm() {
  return {.row_product = row_product<Factors>, .row_sum = row_sum<Factors>};
}

}  // namespace

void add_bf16(Bf16Kernels& kernels) {
  kernels.emulated = gemm<Bf16Pairs<Emulated>>();
  kernels.probe_emulated = probe<Emulated>();
  kernels.probe_fma = probe<SinglePrecision>();
#if defined(__AVX512F__)
  kernels.instruction = gemm<Bf16Pairs<Instruction>>();
  kernels.probe_instruction = probe<Instruction>();
#endif
}

}  // namespace dpt::DPT_ISA
