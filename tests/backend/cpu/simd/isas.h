// What the tests of the kernels share: every instruction set of this CPU, and values that make
// every product and sum exact.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/cpu/simd/simd.h"

namespace dpt {

inline std::vector<const SimdKernels*> isas_of_this_cpu() {
  std::vector<const SimdKernels*> all;
  for (const char* name : {"baseline", "avx2", "avx512"})
    if (const SimdKernels* kernels = simd_kernels(name)) all.push_back(kernels);
  return all;
}

// A small generator of its own: the same values on every machine.
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed * 2 + 1) {}
  uint32_t next() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<uint32_t>(state_ >> 33);
  }
  // -4 .. 4: sums of 4096 products stay below 2^24, so that floats hold every partial sum exactly.
  float integer() { return static_cast<float>(next() % 9) - 4; }
  float real() { return static_cast<float>(next() % 65536) / 32768 - 1; }  // [-1, 1)
  std::vector<float> integers(size_t size) {
    std::vector<float> values(size);
    for (float& v : values) v = integer();
    return values;
  }
  std::vector<float> reals(size_t size) {
    std::vector<float> values(size);
    for (float& v : values) v = real();
    return values;
  }

 private:
  uint64_t state_;
};

}  // namespace dpt
