#include "backend/cpu/simd/halves.h"

namespace dpt {

const HalfKernels& half_simd(Isa isa) {
  static const HalfKernels baseline = [] {
    HalfKernels k{};
    simd_baseline::add_halves(k);
    return k;
  }();
#if defined(__x86_64__)
  static const HalfKernels avx2 = [] {
    HalfKernels k{};
    simd_avx2::add_halves(k);
    return k;
  }();
  static const HalfKernels avx512 = [] {
    HalfKernels k{};
    simd_avx512::add_halves(k);
    return k;
  }();
  if (isa == Isa::avx512) return avx512;
  if (isa == Isa::avx2) return avx2;
#endif
  (void)isa;
  return baseline;
}

}  // namespace dpt
