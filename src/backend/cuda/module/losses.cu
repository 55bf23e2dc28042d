#include "backend/cuda/kernels/losses.h"
#include "backend/cuda/module/entries.cuh"

template <>
std::span<const dpt::cuda::KernelEntry> dpt::cuda::entries_of<dpt::cuda::LossKernels>() {
  return make_entries(LossKernels{});
}
