#include "backend/cuda/kernels/update.h"
#include "backend/cuda/module/entries.cuh"

template <>
std::span<const dpt::cuda::KernelEntry> dpt::cuda::entries_of<dpt::cuda::UpdateKernels>() {
  return make_entries(UpdateKernels{});
}
