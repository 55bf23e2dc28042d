#include "backend/cuda/interface/library_answer.h"

#include <algorithm>
#include <array>

namespace dpt::cuda {
namespace {

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Parts of cudnnStatus_t names that mean a fault, rather than a graph that cuDNN does not support.
constexpr std::array<std::string_view, 10> kFaults = {"INCOMPATIBLE_CUDA_DRIVER",
                                                      "INCOMPATIBLE_CUDART",
                                                      "RUNTIME_PREREQUISITE_MISSING",
                                                      "SUBLIBRARY_UNAVAILABLE",
                                                      "SUBLIBRARY_LOADING",
                                                      "VERSION_MISMATCH",
                                                      "NOT_INITIALIZED",
                                                      "INTERNAL_ERROR",
                                                      "EXECUTION_FAILED",
                                                      "ALLOC"};

}  // namespace

Answer dnn_answer(DnnCode code, std::string_view message) {
  if (code == DnnCode::good) return Answer::made;
  if (std::ranges::any_of(kFaults, [&](std::string_view f) { return has(message, f); }))
    return Answer::failed;
  if (code != DnnCode::other || has(message, "CUDNN_STATUS_NOT_SUPPORTED")) return Answer::refused;
  return Answer::failed;
}

bool says_out_of_memory(std::string_view message) {
  return has(message, "ALLOC_FAILED") || has(message, "ALLOCATION_FAILED") ||
         has(message, "out of memory");
}

}  // namespace dpt::cuda
