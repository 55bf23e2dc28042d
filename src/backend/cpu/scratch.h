// Memory for intermediate results that no kernel needs after its run: all kernels of a thread share
// it.
#pragma once

#include <cstddef>

namespace dpt {

// This thread's, at least `bytes`, beginning at a cache line. Grows where it must: call it when
// preparing, and nothing is allocated in run().
std::byte* scratch(size_t bytes);

float* gemm_workspace();  // as simd/gemm.h wants it, of this memory

size_t scratch_bytes();  // of this thread

}  // namespace dpt
