// The cuDNN descriptions of operators, shared with the test of cuDNN's plans.
#pragma once

#include "backend/cuda/interface/device_work.h"
#include "graph/kernel.h"

namespace dpt::cuda {

// REQUIRES: the operator's "cudnn" implementation does not refuse the query.
DnnPool pool_of(const KernelQuery& q);
DnnAttention attention_of(const KernelQuery& q);

}  // namespace dpt::cuda
