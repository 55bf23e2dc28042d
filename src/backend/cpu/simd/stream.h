// Stores past the caches, for arrays that are larger than these: the lines of such an array need
// not be read before they are written, and are gone anyway when somebody reads them. Only for
// .inc.cpp files, see isa.h.
#pragma once

#include "backend/cpu/simd/lanes.h"

namespace dpt::DPT_ISA {

constexpr size_t kStreamedBytes = size_t{1} << 20;

// As the caches have it.
struct Cached {
  [[gnu::always_inline]] void operator()(Whole at, float* p, Lanes x) const { at.put(p, x); }
  [[gnu::always_inline]] void operator()(Rest at, float* p, Lanes x) const { at.put(p, x); }
};

#if defined(__AVX2__)
// REQUIRES: p is aligned to a vector.
struct Streamed {
  [[gnu::always_inline]] void operator()(Whole, float* p, Lanes x) const {
#if defined(__AVX512F__)
    _mm512_stream_ps(p, x.v);
#else
    _mm256_stream_ps(p, x.v);
#endif
  }
  [[gnu::always_inline]] void operator()(Rest at, float* p, Lanes x) const { at.put(p, x); }
};
#endif

// For the cores that read what was streamed after a meeting.
DPT_SIMD void end_streams() {
#if defined(__AVX2__)
  _mm_sfence();
#endif
}

// Calls f(Cached or Streamed) for an array of rows of c floats, which f writes with it.
template <class F>
DPT_SIMD void with_store_to(const float* to, size_t rows, size_t c, F f) {
#if defined(__AVX2__)
  const bool aligned = reinterpret_cast<uintptr_t>(to) % sizeof(Vector) == 0 && c % kLanes == 0;
  if (aligned && rows * c * sizeof(float) >= kStreamedBytes) {
    f(Streamed{});
    end_streams();
    return;
  }
#else
  (void)to, (void)rows, (void)c;
#endif
  f(Cached{});
}

}  // namespace dpt::DPT_ISA
