// Makes the entries of a list of own kernels: for each, a device function and a launch function.
#pragma once

#include "backend/cuda/kernels/block.h"
#include "backend/cuda/module/entries.h"

namespace dpt::cuda {

template <ElementKernel K>
__global__ void __launch_bounds__(kElementThreads)
    run_elements(const __grid_constant__ K kernel, const int64_t count) {
  const int64_t i = int64_t{blockIdx.x} * kElementThreads + threadIdx.x;
  if (i < count) kernel(i);
}

template <BlockKernel K>
__global__ void __launch_bounds__(K::kThreads) run_blocks(const __grid_constant__ K kernel) {
  __shared__ typename K::Shared shared;
  DeviceBlock<typename K::Shared> block(shared);
  kernel(block);
}

template <class K>
const void* function_of() {
  if constexpr (ElementKernel<K>)
    return reinterpret_cast<const void*>(&run_elements<K>);
  else
    return reinterpret_cast<const void*>(&run_blocks<K>);
}

// Returns the status of this launch. cudaPeekAtLastError() after <<<>>> could also return an error
// of an earlier call.
template <class K>
cudaError_t launch_kernel(const void* kernel, int64_t count, cudaStream_t stream) {
  int64_t blocks = count;
  unsigned threads = 0;
  if constexpr (ElementKernel<K>) {
    blocks = (count + kElementThreads - 1) / kElementThreads;
    threads = kElementThreads;
  } else {
    threads = K::kThreads;
  }
  if (blocks > INT32_MAX) return cudaErrorInvalidConfiguration;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(threads);
  config.stream = stream;
  void* arguments[] = {const_cast<void*>(kernel), &count};  // block kernels only take the first
  return cudaLaunchKernelExC(&config, function_of<K>(), arguments);
}

template <class... K>
std::span<const KernelEntry> make_entries(KernelList<K...>) {
  static const KernelEntry entries[] = {
      {kernel_name<K>(), sizeof(K), function_of<K>(), launch_kernel<K>}...};
  return entries;
}

}  // namespace dpt::cuda
