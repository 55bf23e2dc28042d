#include "backend/cuda/kernels/pointwise.h"
#include "backend/cuda/module/entries.cuh"

template <>
std::span<const dpt::cuda::KernelEntry> dpt::cuda::entries_of<dpt::cuda::Bf16ActivationKernels>() {
  return make_entries(Bf16ActivationKernels{});
}
