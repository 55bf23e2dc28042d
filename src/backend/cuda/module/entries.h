// The own kernels as the module launches them: one entry for each kernel of the lists in
// kernels/all.h. The .cu file of a list instantiates its entries; nothing else needs nvcc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <cuda_runtime_api.h>

#include "backend/cuda/kernels/own_kernel.h"

namespace dpt::cuda {

struct KernelEntry {
  std::string_view name;
  size_t bytes;          // size of the kernel's struct
  const void* function;  // for cudaFuncGetAttributes
  cudaError_t (*launch)(const void* kernel, int64_t count, cudaStream_t stream);
};

// The entries of one list, in its order.
template <class List>
std::span<const KernelEntry> entries_of();

}  // namespace dpt::cuda
