// Non-temporal stores for arrays that are larger than the caches. The cache lines of such an array
// need not be read before they are written, and they would be evicted before anybody reads them.
// Only for .inc.cpp files, see isa.h.
#pragma once

#include "backend/cpu/simd/lanes.h"
#include "base/units.h"

namespace dpt::DPT_ISA {

constexpr size_t kStreamedBytes = kMiB;

// Ordinary stores.
struct Cached {
  template <class At, class T>
  [[gnu::always_inline]] void operator()(At at, T* p, Lanes x) const {
    at.put(p, x);
  }
};

#if defined(__AVX2__)
// Non-temporal stores. REQUIRES: p is aligned to a vector.
struct Streamed {
  [[gnu::always_inline]] void operator()(Whole, float* p, Lanes x) const {
#if defined(__AVX512F__)
    _mm512_stream_ps(p, x.v);
#else
    _mm256_stream_ps(p, x.v);
#endif
  }
  [[gnu::always_inline]] void operator()(Whole at, uint16_t* p, Lanes x) const {
#if defined(__AVX512F__)
    (void)at;
    _mm256_stream_si256(reinterpret_cast<__m256i*>(p), to_bf16(x.v));
#else
    at.put(p, x);
#endif
  }
  template <class T>
  [[gnu::always_inline]] void operator()(Rest at, T* p, Lanes x) const {
    at.put(p, x);
  }
};
#endif

// Makes streamed data visible to cores that read it after a barrier.
DPT_SIMD void end_streams() {
#if defined(__AVX2__)
  _mm_sfence();
#endif
}

// Calls f(Cached or Streamed) with the stores to use for an array of `rows` rows of `c` elements.
template <class T, class F>
DPT_SIMD void with_store_to(const T* to, size_t rows, size_t c, F f) {
#if defined(__AVX2__)
  const bool aligned =
      reinterpret_cast<uintptr_t>(to) % (kLanes * sizeof(T)) == 0 && c % kLanes == 0;
  if (aligned && rows * c * sizeof(T) >= kStreamedBytes) {
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
