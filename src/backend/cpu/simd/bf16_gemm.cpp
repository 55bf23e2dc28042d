#include "backend/cpu/simd/bf16_gemm.h"

#include "backend/cpu/simd/table_of.h"

namespace dpt {

const Bf16Kernels& bf16_simd(Isa isa) {
  return table_of<Bf16Kernels>(isa, {DPT_OF_EACH_ISA(add_bf16), DPT_OF_EACH_ISA(add_tiles)});
}

}  // namespace dpt
