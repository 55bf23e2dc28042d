#include "backend/cpu/simd/batch_norm.h"

namespace dpt {

const BatchNormKernels& batch_norm_simd(Isa isa) {
  const auto filled = [](void (*add)(BatchNormKernels&)) {
    BatchNormKernels k{};
    add(k);
    return k;
  };
  static const BatchNormKernels baseline = filled(simd_baseline::add_batch_norm);
#if defined(__x86_64__)
  static const BatchNormKernels avx2 = filled(simd_avx2::add_batch_norm);
  static const BatchNormKernels avx512 = filled(simd_avx512::add_batch_norm);
  if (isa == Isa::avx512) return avx512;
  if (isa == Isa::avx2) return avx2;
#endif
  (void)isa;
  return baseline;
}

}  // namespace dpt
