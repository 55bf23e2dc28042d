#include "backend/cuda/kernels/basic.h"
#include "backend/cuda/module/entries.cuh"

template <>
std::span<const dpt::cuda::KernelEntry> dpt::cuda::entries_of<dpt::cuda::BasicKernels>() {
  return make_entries(BasicKernels{});
}
