// The entry points of the .inc.cpp files that fill in SimdKernels. Only for this folder.
#pragma once

#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/simd.h"

namespace dpt {

DPT_FOR_EACH_ISA(void add_linear(SimdKernels& kernels))
DPT_FOR_EACH_ISA(void add_sums(SimdKernels& kernels))
DPT_FOR_EACH_ISA(void add_updates(SimdKernels& kernels))
DPT_FOR_EACH_ISA(void add_gathers(SimdKernels& kernels))

}  // namespace dpt
