// Converts return codes of CUDA's libraries to errors.
#pragma once

#include <string>

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include "backend/cuda/interface/cuda_error.h"
#include "base/error.h"

namespace dpt::cuda {

// call: the function's name, for messages such as "cudaMalloc: out of memory
// (cudaErrorMemoryAllocation)".
inline void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears it, or the next call would return it again
  const Fault fault = status == cudaErrorMemoryAllocation ? Fault::memory : Fault::device;
  throw Error(fault, message_of({.call = call,
                                 .status = status,
                                 .name = cudaGetErrorName(status),
                                 .text = cudaGetErrorString(status)},
                                launches_block()));
}

inline void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const Fault fault = status == CUBLAS_STATUS_ALLOC_FAILED ? Fault::memory : Fault::device;
  throw Error(fault, std::string(call) + ": " + cublasLtGetStatusString(status) + " (" +
                         cublasLtGetStatusName(status) + ")" +
                         (status == CUBLAS_STATUS_EXECUTION_FAILED ? how_to_find_the_call() : ""));
}

}  // namespace dpt::cuda
