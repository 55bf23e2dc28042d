// Matrix products by cuBLASLt.
#pragma once

#include <memory>

#include <cublasLt.h>

#include "backend/cuda/module/stream.h"

namespace dpt::cuda {

// The first algorithm of cuBLASLt's heuristics within kMatmulWorkspace: the same choice each time,
// so the same bits. REQUIRES: the handle outlives it.
std::unique_ptr<RuntimeWork> prepare_matmul(cublasLtHandle_t handle, const Matmul& matmul);

}  // namespace dpt::cuda
