#include "backend/cpu/simd/images.h"

namespace dpt {

const ImageKernels& image_simd(Isa isa) {
  const auto filled = [](void (*add)(ImageKernels&)) {
    ImageKernels k{};
    add(k);
    return k;
  };
  static const ImageKernels baseline = filled(simd_baseline::add_images);
#if defined(__x86_64__)
  static const ImageKernels avx2 = filled(simd_avx2::add_images);
  static const ImageKernels avx512 = filled(simd_avx512::add_images);
  if (isa == Isa::avx512) return avx512;
  if (isa == Isa::avx2) return avx2;
#endif
  (void)isa;
  return baseline;
}

}  // namespace dpt
