#include "backend/cuda/kernels/products.h"
#include "backend/cuda/module/entries.cuh"

template <>
std::span<const dpt::cuda::KernelEntry> dpt::cuda::entries_of<dpt::cuda::ProductKernels>() {
  return make_entries(ProductKernels{});
}
