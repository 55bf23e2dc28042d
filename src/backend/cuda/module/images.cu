#include "backend/cuda/kernels/images.h"
#include "backend/cuda/module/entries.cuh"

template <>
std::span<const dpt::cuda::KernelEntry> dpt::cuda::entries_of<dpt::cuda::ImageKernels>() {
  return make_entries(ImageKernels{});
}
