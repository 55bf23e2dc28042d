// Scratch memory of kernels. All kernels of a thread share it, and its content is lost after a run.
#pragma once

#include <cstddef>

namespace dpt {

// This thread's scratch memory: at least `bytes`, aligned to a cache line. It grows if necessary,
// so call it when a kernel is prepared; then run() does not allocate.
std::byte* scratch(size_t bytes);

float* gemm_workspace();  // kGemmWorkspace floats of scratch memory, for simd/gemm.h

size_t scratch_bytes();  // current size of this thread's scratch memory

}  // namespace dpt
