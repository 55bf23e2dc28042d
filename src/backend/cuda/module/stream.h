// Streams, events and captured graphs of the CUDA runtime.
#pragma once

#include <memory>

#include <cuda_runtime_api.h>

#include "backend/cuda/interface/device_api.h"

namespace dpt::cuda {

// Work of a library that RuntimeStream can enqueue.
class RuntimeWork : public DeviceWork {
 public:
  virtual void enqueue(cudaStream_t stream, std::span<std::byte* const> tensors,
                       std::byte* workspace) = 0;
};

void enqueue_kernel(const KernelLaunch& kernel, cudaStream_t stream);
// urgent: with the highest priority, so that its kernels start first.
std::unique_ptr<Stream> make_runtime_stream(bool urgent = false);
std::unique_ptr<Event> make_runtime_event();
cudaStream_t handle_of(Stream& stream);

}  // namespace dpt::cuda
