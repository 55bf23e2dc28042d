#include "backend/cuda/kernels/pointwise.h"
#include "backend/cuda/module/entries.cuh"

template <>
std::span<const dpt::cuda::KernelEntry> dpt::cuda::entries_of<dpt::cuda::F16ActivationKernels>() {
  return make_entries(F16ActivationKernels{});
}
