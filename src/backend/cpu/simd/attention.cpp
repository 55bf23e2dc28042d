#include "backend/cpu/simd/attention.h"

#include "backend/cpu/simd/table_of.h"

namespace dpt {

const AttentionKernels& attention_simd(Isa isa) {
  return table_of<AttentionKernels>(isa, {DPT_OF_EACH_ISA(add_attention)});
}

}  // namespace dpt
