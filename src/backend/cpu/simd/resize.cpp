#include "backend/cpu/simd/resize.h"

#include "backend/cpu/simd/table_of.h"

namespace dpt {

const ResizeKernels& resize_simd(Isa isa) {
  return table_of<ResizeKernels>(isa, {DPT_OF_EACH_ISA(add_resize)});
}

}  // namespace dpt
