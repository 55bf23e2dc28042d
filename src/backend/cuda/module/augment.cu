#include "backend/cuda/kernels/augment.h"
#include "backend/cuda/module/entries.cuh"

template <>
std::span<const dpt::cuda::KernelEntry> dpt::cuda::entries_of<dpt::cuda::AugmentKernels>() {
  return make_entries(AugmentKernels{});
}
