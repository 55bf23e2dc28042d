#include "backend/cuda/interface/library_answer.h"

#include <string>

#include <doctest/doctest.h>

namespace dpt::cuda {
namespace {

TEST_CASE(
    "cuBLASLt refuses a product by 'not supported' or by no algorithm, all else is an error") {
  CHECK(cublas_answer(kCublasSuccess, 1) == Answer::made);
  CHECK(cublas_answer(kCublasSuccess, 0) == Answer::refused);
  CHECK(cublas_answer(kCublasNotSupported, 0) == Answer::refused);
  for (const int status : {1, 3, 7, 8, 11, 13, 14})  // of cublasStatus_t: not initialized, ...
    CHECK(cublas_answer(status, 0) == Answer::failed);
}

TEST_CASE("cuDNN refuses a graph that it does not support, all else is an error") {
  CHECK(dnn_answer(DnnCode::good, "") == Answer::made);
  CHECK(dnn_answer(DnnCode::not_supported, "sdpa wants d <= 256") == Answer::refused);
  CHECK(dnn_answer(DnnCode::heuristic_failed, "No valid engine configs for ConvBwdFilter_\n") ==
        Answer::refused);
  CHECK(dnn_answer(DnnCode::no_plan,
                   "No execution plans support the graph.\nPlan at index 0: Deselecting execution "
                   "plan\nPlan at index 1: Skipping plan since workspace violation. Requires 9") ==
        Answer::refused);
  CHECK(dnn_answer(DnnCode::other, "finalize failed, CUDNN_STATUS_NOT_SUPPORTED_LAYOUT") ==
        Answer::refused);
  CHECK(dnn_answer(DnnCode::other, "Device properties are not set.") == Answer::failed);
  CHECK(dnn_answer(DnnCode::other, "finalize failed, CUDNN_STATUS_BAD_PARAM") == Answer::failed);
}

TEST_CASE("a fault of the machine is no refusal of cuDNN's, whatever code its front end gives it") {
  for (const char* status :
       {"CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING",
        "CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE",
        "CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER", "CUDNN_STATUS_NOT_INITIALIZED",
        "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH", "CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED",
        "CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED", "CUDNN_STATUS_EXECUTION_FAILED_CUDART",
        "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"})
    for (const DnnCode code :
         {DnnCode::not_supported, DnnCode::heuristic_failed, DnnCode::no_plan, DnnCode::other}) {
      CAPTURE(status);
      CHECK(dnn_answer(code, std::string("No valid engine configs for X\n") + status) ==
            Answer::failed);
    }
  CHECK(says_out_of_memory("CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED"));
  CHECK(says_out_of_memory("cudaMalloc failed with out of memory"));
  CHECK_FALSE(says_out_of_memory("CUDNN_STATUS_BAD_PARAM"));
}

}  // namespace
}  // namespace dpt::cuda
