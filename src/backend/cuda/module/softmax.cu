#include "backend/cuda/kernels/softmax.h"
#include "backend/cuda/module/entries.cuh"

template <>
std::span<const dpt::cuda::KernelEntry> dpt::cuda::entries_of<dpt::cuda::SoftmaxKernels>() {
  return make_entries(SoftmaxKernels{});
}
