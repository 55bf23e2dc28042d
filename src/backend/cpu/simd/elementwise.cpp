#include "backend/cpu/simd/elementwise.h"

#include "backend/cpu/simd/table_of.h"

namespace dpt {

const ElementwiseKernels& elementwise_simd(Isa isa) {
  return table_of<ElementwiseKernels>(
      isa, {DPT_OF_EACH_ISA(add_activations), DPT_OF_EACH_ISA(add_pointwise_losses),
            DPT_OF_EACH_ISA(add_dropout), DPT_OF_EACH_ISA(add_softmax),
            DPT_OF_EACH_ISA(add_softmax_columns), DPT_OF_EACH_ISA(add_row_norm)});
}

}  // namespace dpt
