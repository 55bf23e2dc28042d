#include "backend/cuda/kernels/vector_losses.h"
#include "backend/cuda/module/entries.cuh"

template <>
std::span<const dpt::cuda::KernelEntry> dpt::cuda::entries_of<dpt::cuda::VectorLossKernels>() {
  return make_entries(VectorLossKernels{});
}
