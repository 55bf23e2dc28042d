#include "backend/cuda/kernels/sums.h"
#include "backend/cuda/module/entries.cuh"

template <>
std::span<const dpt::cuda::KernelEntry> dpt::cuda::entries_of<dpt::cuda::SumKernels>() {
  return make_entries(SumKernels{});
}
