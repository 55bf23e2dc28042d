// Matrix products by cuBLASLt.
#pragma once

#include <memory>

#include <cublasLt.h>

#include "backend/cuda/module/stream.h"

namespace dpt::cuda {

// Prepares the first algorithm of cuBLASLt's heuristics within kMatmulWorkspace. The choice, and so
// the bits, are the same each time. REQUIRES: the handle outlives the work.
std::unique_ptr<RuntimeWork> prepare_matmul(cublasLtHandle_t handle, const Matmul& matmul);

}  // namespace dpt::cuda
