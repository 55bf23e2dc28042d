#include "backend/cpu/simd/ctc.h"

#include "backend/cpu/simd/table_of.h"

namespace dpt {

const CtcKernels& ctc_simd(Isa isa) {
  return table_of<CtcKernels>(isa, {DPT_OF_EACH_ISA(add_ctc)});
}

}  // namespace dpt
