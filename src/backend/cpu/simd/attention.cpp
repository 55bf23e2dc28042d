#include "backend/cpu/simd/attention.h"

#include "backend/cpu/simd/table_of.h"

namespace dpt {

const AttentionVariants& attention_simd(Isa isa) {
  return table_of<AttentionVariants>(
      isa, {DPT_OF_EACH_ISA(add_attention), DPT_OF_EACH_ISA(add_attention_gradient)});
}

}  // namespace dpt
