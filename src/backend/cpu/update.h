// Optimizer updates on a CPU.
#pragma once

#include <cstddef>

#include "backend/cpu/simd/simd.h"

namespace dpt {

struct OptimizerStep;  // graph/optimizer_step.h

void run_update(const OptimizerStep& step, const UpdateArgs& args);

// Norms of gradients as in torch.nn.utils.clip_grad_norm_: norm_type > 0, or infinity.
// norm_partials() writes partial[c] for the chunks c in [first, last), each of kSquareChunk
// elements of x [size]; norm_total() combines partial [chunks] into the norm.
void norm_partials(double norm_type, const float* x, size_t size, size_t first, size_t last,
                   double* partial);
double norm_total(double norm_type, const double* partial, size_t chunks);

}  // namespace dpt
