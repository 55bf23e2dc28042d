// The optimizers' updates on a CPU, by name of what the optimizer computed for the step.
#pragma once

#include <cstddef>

#include "backend/cpu/simd/simd.h"
#include "graph/optimizer_step.h"

namespace dpt {

void run_update(const OptimizerStep& step, const UpdateArgs& args);

// Norms of gradients as torch.nn.utils.clip_grad_norm_ takes them: norm_type 1, 2 or infinity.
// partial[c] belongs to chunk c of kSquareChunk elements, c in [first, last).
void norm_partials(double norm_type, const float* x, size_t size, size_t first, size_t last,
                   double* partial);
double norm_total(double norm_type, const double* partial, size_t chunks);

}  // namespace dpt
