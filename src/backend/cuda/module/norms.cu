#include "backend/cuda/kernels/norms.h"
#include "backend/cuda/module/entries.cuh"

template <>
std::span<const dpt::cuda::KernelEntry> dpt::cuda::entries_of<dpt::cuda::NormKernels>() {
  return make_entries(NormKernels{});
}
