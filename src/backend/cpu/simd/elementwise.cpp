#include "backend/cpu/simd/elementwise.h"

namespace dpt {

const ElementwiseKernels& elementwise_simd(Isa isa) {
  static const ElementwiseKernels baseline = [] {
    ElementwiseKernels k{};
    simd_baseline::add_activations(k);
    simd_baseline::add_point_losses(k);
    simd_baseline::add_dropout(k);
    simd_baseline::add_softmax(k);
    simd_baseline::add_layer_norm(k);
    return k;
  }();
#if defined(__x86_64__)
  static const ElementwiseKernels avx2 = [] {
    ElementwiseKernels k{};
    simd_avx2::add_activations(k);
    simd_avx2::add_point_losses(k);
    simd_avx2::add_dropout(k);
    simd_avx2::add_softmax(k);
    simd_avx2::add_layer_norm(k);
    return k;
  }();
  static const ElementwiseKernels avx512 = [] {
    ElementwiseKernels k{};
    simd_avx512::add_activations(k);
    simd_avx512::add_point_losses(k);
    simd_avx512::add_dropout(k);
    simd_avx512::add_softmax(k);
    simd_avx512::add_layer_norm(k);
    return k;
  }();
  if (isa == Isa::avx512) return avx512;
  if (isa == Isa::avx2) return avx2;
#endif
  (void)isa;
  return baseline;
}

}  // namespace dpt
