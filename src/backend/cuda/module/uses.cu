#include "backend/cuda/kernels/uses.h"
#include "backend/cuda/module/entries.cuh"

template <>
std::span<const dpt::cuda::KernelEntry> dpt::cuda::entries_of<dpt::cuda::UseKernels>() {
  return make_entries(UseKernels{});
}
