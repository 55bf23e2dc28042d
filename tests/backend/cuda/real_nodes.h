// Nodes of models of real sizes, as a GPU gets them: 64 and 128 channels, attention heads of 8, 64
// and 128 columns, wide matrix products.
#pragma once

#include <vector>

#include "graph/kernel.h"

namespace dpt::cuda {

struct RealNode {
  KernelQuery query;
  bool tf32 = false;  // products of f32 may round their factors
};
// In fp32, tf32, bf16 and fp16; of the forward, loss and backward parts; equal ones once.
std::vector<RealNode> real_nodes();

}  // namespace dpt::cuda
