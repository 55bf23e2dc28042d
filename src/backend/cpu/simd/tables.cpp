// The tables of kernels, one for each instruction set.
#include "backend/cpu/simd/attention.h"
#include "backend/cpu/simd/batch_norm.h"
#include "backend/cpu/simd/bf16_gemm.h"
#include "backend/cpu/simd/ctc.h"
#include "backend/cpu/simd/elementwise.h"
#include "backend/cpu/simd/gemm.h"
#include "backend/cpu/simd/halves.h"
#include "backend/cpu/simd/images.h"
#include "backend/cpu/simd/resize.h"
#include "backend/cpu/simd/table_of.h"

namespace dpt {

const AttentionVariants& attention_simd(Isa isa) {
  return table_of<AttentionVariants>(
      isa, {DPT_OF_EACH_ISA(add_attention), DPT_OF_EACH_ISA(add_attention_gradient)});
}

const BatchNormKernels& batch_norm_simd(Isa isa) {
  return table_of<BatchNormKernels>(isa, {DPT_OF_EACH_ISA(add_batch_norm)});
}

const Bf16Kernels& bf16_simd(Isa isa) {
  return table_of<Bf16Kernels>(isa, {DPT_OF_EACH_ISA(add_bf16), DPT_OF_EACH_ISA(add_tiles)});
}

const CtcKernels& ctc_simd(Isa isa) {
  return table_of<CtcKernels>(isa, {DPT_OF_EACH_ISA(add_ctc)});
}

const ElementwiseKernels& elementwise_simd(Isa isa) {
  return table_of<ElementwiseKernels>(
      isa, {DPT_OF_EACH_ISA(add_activations), DPT_OF_EACH_ISA(add_pointwise_losses),
            DPT_OF_EACH_ISA(add_dropout), DPT_OF_EACH_ISA(add_softmax),
            DPT_OF_EACH_ISA(add_softmax_columns), DPT_OF_EACH_ISA(add_row_norm)});
}

const GemmKernels& gemm_simd(Isa isa) {
  return table_of<GemmKernels>(isa, {DPT_OF_EACH_ISA(add_gemm)});
}

const HalfKernels& half_simd(Isa isa) {
  return table_of<HalfKernels>(isa, {DPT_OF_EACH_ISA(add_halves)});
}

const ImageKernels& image_simd(Isa isa) {
  return table_of<ImageKernels>(isa, {DPT_OF_EACH_ISA(add_images)});
}

const ResizeKernels& resize_simd(Isa isa) {
  return table_of<ResizeKernels>(isa, {DPT_OF_EACH_ISA(add_resize)});
}

}  // namespace dpt
