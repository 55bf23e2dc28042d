#include "backend/cuda/interface/cuda_error.h"

#include <cstdlib>
#include <string>

#include <doctest/doctest.h>

namespace dpt::cuda {
namespace {

TEST_CASE("an asynchronous fault of the GPU is not blamed on the call that reports it") {
  const CudaError launch{"cudaLaunchKernelExC of Adam", 700, "cudaErrorIllegalAddress",
                         "an illegal memory access was encountered"};
  CHECK(message_of(launch, false) ==
        "the GPU failed at work that was enqueued earlier: an illegal memory access was "
        "encountered (cudaErrorIllegalAddress), reported by cudaLaunchKernelExC of Adam; to find "
        "the call that failed, run again with graphs=false and CUDA_LAUNCH_BLOCKING=1 in the "
        "environment");
  // Each call waits for its own work.
  CHECK(message_of(launch, true) ==
        "cudaLaunchKernelExC of Adam: an illegal memory access was encountered "
        "(cudaErrorIllegalAddress)");
}

TEST_CASE("a launch that CUDA refuses is blamed on its kernel") {
  for (const int status : {1, 2, 9, 98, 209, 701, 900, 901}) CHECK_FALSE(is_asynchronous(status));
  CHECK(message_of({"cudaLaunchKernelExC of Adam", 701, "cudaErrorLaunchOutOfResources",
                    "too many resources requested for launch"},
                   false) ==
        "cudaLaunchKernelExC of Adam: too many resources requested for launch "
        "(cudaErrorLaunchOutOfResources)");
}

TEST_CASE("CUDA_LAUNCH_BLOCKING says whether launches block") {
  const char* const before = std::getenv("CUDA_LAUNCH_BLOCKING");
  const std::string kept = before ? before : "";
  unsetenv("CUDA_LAUNCH_BLOCKING");
  CHECK_FALSE(launches_block());
  CHECK(how_to_find_the_call().find("CUDA_LAUNCH_BLOCKING=1") != std::string::npos);
  setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
  CHECK(launches_block());
  CHECK(how_to_find_the_call().empty());
  setenv("CUDA_LAUNCH_BLOCKING", "0", 1);
  CHECK_FALSE(launches_block());
  if (before)
    setenv("CUDA_LAUNCH_BLOCKING", kept.c_str(), 1);
  else
    unsetenv("CUDA_LAUNCH_BLOCKING");
}

}  // namespace
}  // namespace dpt::cuda
