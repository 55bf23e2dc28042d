#include "backend/cpu/simd/images.h"

#include "backend/cpu/simd/table_of.h"

namespace dpt {

const ImageKernels& image_simd(Isa isa) {
  return table_of<ImageKernels>(isa, {DPT_OF_EACH_ISA(add_images)});
}

}  // namespace dpt
