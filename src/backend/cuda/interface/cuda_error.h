// Messages of calls of the CUDA runtime that failed.
#pragma once

#include <string>
#include <string_view>

namespace dpt::cuda {

// Whether a cudaError_t reports work that the GPU did, or failed to do, after an earlier call had
// enqueued it. Every later call of the process returns it too, so the call that first does is not
// the one to blame.
bool is_asynchronous(int status);

struct CudaError {
  std::string_view call;        // the function that returned it: "cudaMalloc"
  int status;                   // a cudaError_t
  std::string_view name, text;  // "cudaErrorMemoryAllocation", "out of memory"
};
// blocking: every call waited for its work (CUDA_LAUNCH_BLOCKING=1), so the call is the one to
// blame.
std::string message_of(const CudaError& error, bool blocking);

// Whether CUDA_LAUNCH_BLOCKING asks for that.
bool launches_block();

// What to do where a failed call may report work of an earlier one; empty if launches block.
std::string how_to_find_the_call();

}  // namespace dpt::cuda
