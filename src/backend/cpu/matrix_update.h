// The update of a whole matrix on one CPU core: muon's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "graph/formulas/optimizers/muon.h"

namespace dpt {

// Floats of workspace for a matrix.
size_t orthogonal_workspace(int64_t rows, int64_t columns);

// Replaces x [rows, columns] by an approximately orthogonal matrix, as
// torch.optim._muon._zeropower_via_newtonschulz, but in float32 instead of bf16. The bits depend on
// x, the shape and the CPU's instruction set alone. REQUIRES: gemm_workspace() was called on this
// thread, or this allocates it.
void make_orthogonal(const formula::Muon<float>& s, float* x, int64_t rows, int64_t columns,
                     float* workspace);

// The factor of the orthogonal matrix in the update of a parameter of shape [rows, columns], as
// torch.optim._muon._adjust_lr.
double step_size(const formula::Muon<double>& s, int64_t rows, int64_t columns);

}  // namespace dpt
