// Basis of host/device formulas: element-wise formulas are written once, as functions on scalars,
// for the CPU and for CUDA kernels.
//
// nvcc compiles this file: no fmt, no containers. This is the only place that checks which compiler
// runs. Both back ends compile formulas without fused multiply-add contraction (-ffp-contract=off,
// -fmad=false), so that they agree in every bit.
#pragma once

#ifdef __CUDACC__
#define DPT_METHOD __host__ __device__ inline
#else
// always_inline: a formula is compiled for several instruction sets. An out-of-line copy could be
// merged by the linker and then run on a CPU without its instructions.
#define DPT_METHOD [[gnu::always_inline]] inline  // of a formula with members
#endif
#define DPT_FORMULA DPT_METHOD static
