#include "backend/cpu/simd/batch_norm.h"

#include "backend/cpu/simd/table_of.h"

namespace dpt {

const BatchNormKernels& batch_norm_simd(Isa isa) {
  return table_of<BatchNormKernels>(isa, {DPT_OF_EACH_ISA(add_batch_norm)});
}

}  // namespace dpt
