#include "backend/cuda/kernels/gather.h"
#include "backend/cuda/module/entries.cuh"

template <>
std::span<const dpt::cuda::KernelEntry> dpt::cuda::entries_of<dpt::cuda::GatherKernels>() {
  return make_entries(GatherKernels{});
}
