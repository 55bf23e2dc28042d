#include "backend/cuda/interface/cuda_error.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <fmt/format.h>

namespace dpt::cuda {
namespace {

// cudaErrorECCUncorrectable, NvlinkUncorrectable, Contained, IllegalAddress, LaunchTimeout, Assert,
// HardwareStackError, IllegalInstruction, MisalignedAddress, InvalidAddressSpace, InvalidPc,
// LaunchFailure, TensorMemoryLeak, MpsClientTerminated, ExternalDevice, Unknown.
constexpr std::array kAsynchronous = {214, 220, 226, 700, 702, 710, 714, 715,
                                      716, 717, 718, 719, 721, 810, 911, 999};

constexpr const char* kHow =
    "to find the call that failed, run again with graphs=false and CUDA_LAUNCH_BLOCKING=1 in the "
    "environment";

}  // namespace

bool is_asynchronous(int status) { return std::ranges::count(kAsynchronous, status) > 0; }

bool launches_block() {
  const char* const set = std::getenv("CUDA_LAUNCH_BLOCKING");
  return set != nullptr && std::atoi(set) != 0;
}

std::string how_to_find_the_call() { return launches_block() ? "" : fmt::format("; {}", kHow); }

std::string message_of(const CudaError& e, bool blocking) {
  if (blocking || !is_asynchronous(e.status))
    return fmt::format("{}: {} ({})", e.call, e.text, e.name);
  return fmt::format(
      "the GPU failed at work that was enqueued earlier: {} ({}), reported by {}; {}", e.text,
      e.name, e.call, kHow);
}

}  // namespace dpt::cuda
