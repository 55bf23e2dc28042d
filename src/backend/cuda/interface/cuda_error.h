// Error messages of failed CUDA runtime calls.
#pragma once

#include <string>
#include <string_view>

namespace dpt::cuda {

// True if a cudaError_t reports earlier enqueued work that failed. Every later call of the process
// returns this status too, so the first call that returns it is not necessarily the one that
// failed.
bool is_asynchronous(int status);

struct CudaError {
  std::string_view call;        // the function that returned it: "cudaMalloc"
  int status;                   // a cudaError_t
  std::string_view name, text;  // "cudaErrorMemoryAllocation", "out of memory"
};
// blocking: with CUDA_LAUNCH_BLOCKING=1 every call waits for its work, so the named call is the one
// that failed.
std::string message_of(const CudaError& error, bool blocking);

// True if CUDA_LAUNCH_BLOCKING is set to a nonzero number.
bool launches_block();

// Advice to add to a message that may report the work of an earlier call; empty if launches block.
std::string how_to_find_the_call();

}  // namespace dpt::cuda
