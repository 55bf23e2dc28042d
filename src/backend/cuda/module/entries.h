// Own kernels as the module launches them: a row for each kernel of the lists of kernels/all.h. The
// .cu of a list instantiates its rows; nothing else needs nvcc.
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
  size_t bytes;          // of the struct
  const void* function;  // for cudaFuncGetAttributes
  cudaError_t (*launch)(const void* kernel, int64_t count, cudaStream_t stream);
};

// The rows of one list, in its order.
template <class List>
std::span<const KernelEntry> entries_of();

}  // namespace dpt::cuda
