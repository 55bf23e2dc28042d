#include "backend/cpu/simd/gemm.h"

#include "backend/cpu/simd/table_of.h"

namespace dpt {

const GemmKernels& gemm_simd(Isa isa) {
  return table_of<GemmKernels>(isa, {DPT_OF_EACH_ISA(add_gemm)});
}

}  // namespace dpt
