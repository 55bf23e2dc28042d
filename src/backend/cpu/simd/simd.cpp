#include "backend/cpu/simd/simd.h"

#include "backend/cpu/simd/tables.h"

namespace dpt {
namespace {

#if defined(__x86_64__)
bool runs_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool runs_avx512() {
  return runs_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

const SimdKernels* avx2() {
  static const SimdKernels kernels = [] {
    SimdKernels k{.name = "avx2", .isa = Isa::avx2};
    simd_avx2::add_linear(k);
    simd_avx2::add_sums(k);
    simd_avx2::add_updates(k);
    simd_avx2::add_gathers(k);
    return k;
  }();
  return runs_avx2() ? &kernels : nullptr;
}

const SimdKernels* avx512() {
  static const SimdKernels kernels = [] {
    SimdKernels k{.name = "avx512", .isa = Isa::avx512};
    simd_avx512::add_linear(k);
    simd_avx512::add_sums(k);
    simd_avx512::add_updates(k);
    simd_avx512::add_gathers(k);
    return k;
  }();
  return runs_avx512() ? &kernels : nullptr;
}
#else
const SimdKernels* avx2() { return nullptr; }
const SimdKernels* avx512() { return nullptr; }
#endif

const SimdKernels* baseline() {
  static const SimdKernels kernels = [] {
    SimdKernels k{.name = "baseline", .isa = Isa::baseline};
    simd_baseline::add_linear(k);
    simd_baseline::add_sums(k);
    simd_baseline::add_updates(k);
    simd_baseline::add_gathers(k);
    return k;
  }();
  return &kernels;
}

}  // namespace

const SimdKernels& simd_kernels() {
  if (const SimdKernels* best = avx512()) return *best;
  if (const SimdKernels* good = avx2()) return *good;
  return *baseline();
}

const SimdKernels* simd_kernels(std::string_view isa) {
  if (isa == "avx512") return avx512();
  if (isa == "avx2") return avx2();
  return isa == "baseline" ? baseline() : nullptr;
}

}  // namespace dpt
