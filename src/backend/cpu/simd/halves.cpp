#include "backend/cpu/simd/halves.h"

#include "backend/cpu/simd/table_of.h"

namespace dpt {

const HalfKernels& half_simd(Isa isa) {
  return table_of<HalfKernels>(isa, {DPT_OF_EACH_ISA(add_halves)});
}

}  // namespace dpt
