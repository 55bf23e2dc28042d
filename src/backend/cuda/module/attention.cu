#include "backend/cuda/kernels/attention.h"
#include "backend/cuda/module/entries.cuh"

template <>
std::span<const dpt::cuda::KernelEntry> dpt::cuda::entries_of<dpt::cuda::AttentionKernels>() {
  return make_entries(AttentionKernels{});
}
