#include "backend/cuda/kernels/copy.h"
#include "backend/cuda/module/entries.cuh"

template <>
std::span<const dpt::cuda::KernelEntry> dpt::cuda::entries_of<dpt::cuda::CopyKernels>() {
  return make_entries(CopyKernels{});
}
