// Treats subnormal floats (below 1.2e-38) as 0 on the constructing thread while the object lives.
// An operation on a subnormal costs about a hundred cycles on most CPUs, and a saturated softmax
// produces many; PyTorch has torch.set_flush_denormal for this.
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <cstdint>

namespace dpt {

class FlushSubnormals {
 public:
  FlushSubnormals() : before_(get()) { set(before_ | kFlush); }
  ~FlushSubnormals() { set(before_); }
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr uint64_t kFlush = 0x8040;  // MXCSR's FTZ (results) and DAZ (operands)
  static uint64_t get() { return _mm_getcsr(); }
  static void set(uint64_t word) { _mm_setcsr(static_cast<unsigned>(word)); }
#elif defined(__aarch64__)
  static constexpr uint64_t kFlush = uint64_t{1} << 24;  // FPCR's FZ
  static uint64_t get() {
    uint64_t word;
    __asm__ volatile("mrs %0, fpcr" : "=r"(word));
    return word;
  }
  static void set(uint64_t word) { __asm__ volatile("msr fpcr, %0" ::"r"(word)); }
#else
  static constexpr uint64_t kFlush = 0;
  static uint64_t get() { return 0; }
  static void set(uint64_t) {}
#endif
  uint64_t before_;
};

}  // namespace dpt
