// What rows ask cuDNN for, also for the test of its plans.
#pragma once

#include "backend/cuda/interface/device_work.h"
#include "graph/kernel.h"

namespace dpt::cuda {

// REQUIRES: the row "cudnn" of the operator does not refuse.
DnnPool pool_of(const KernelQuery& q);
DnnAttention attention_of(const KernelQuery& q);

}  // namespace dpt::cuda
