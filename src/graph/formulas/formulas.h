// What every host/device formula needs: element-wise formulas are written once, as plain functions
// on scalars, for the CPU and for CUDA kernels.
//
// nvcc reads this file: no fmt, no containers. The one place where the code looks at who compiles
// it. Both back ends compile formulas without contraction to fused multiply-add
// (-ffp-contract=off, -fmad=false), so that they agree to the bit.
#pragma once

#ifdef __CUDACC__
#define DPT_FORMULA __host__ __device__ static inline
#else
// always_inline: the same formula is compiled for several instruction sets, and the linker must
// never put one in another's place.
#define DPT_FORMULA [[gnu::always_inline]] static inline
#endif
