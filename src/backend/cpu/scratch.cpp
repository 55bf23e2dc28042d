#include "backend/cpu/scratch.h"

#include <memory>
#include <new>

#include "backend/cpu/simd/gemm.h"
#include "base/units.h"

namespace dpt {
namespace {

constexpr std::align_val_t kLine{kCacheLine};

struct Free {
  void operator()(std::byte* p) const { ::operator delete(p, kLine); }
};

struct Scratch {
  std::unique_ptr<std::byte, Free> memory;
  size_t bytes = 0;
};
thread_local Scratch mine;

}  // namespace

std::byte* scratch(size_t bytes) {
  if (bytes > mine.bytes) {
    mine.memory.reset(static_cast<std::byte*>(::operator new(bytes, kLine)));
    mine.bytes = bytes;
  }
  return mine.memory.get();
}

float* gemm_workspace() {
  return reinterpret_cast<float*>(scratch(kGemmWorkspace * sizeof(float)));
}

size_t scratch_bytes() { return mine.bytes; }

}  // namespace dpt
