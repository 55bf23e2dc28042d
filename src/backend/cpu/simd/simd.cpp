#include "backend/cpu/simd/simd.h"

#include <utility>

#include "backend/cpu/simd/table_of.h"
#include "backend/cpu/simd/tables.h"

namespace dpt {
namespace {

constexpr const char* kNames[] = {"baseline", "avx2", "avx512"};  // in the order of Isa

bool runs(Isa isa) {
  if (isa == Isa::baseline) return true;
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (isa == Isa::avx2) return avx2;
  return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

template <size_t... isas>
AddOfEachIsa<SimdKernels> add_name(std::index_sequence<isas...>) {
  return {[](SimdKernels& k) {
    k.name = kNames[isas];
    k.isa = static_cast<Isa>(isas);
  }...};
}

const SimdKernels& kernels_of(Isa isa) {
  return table_of<SimdKernels>(
      isa, {add_name(std::make_index_sequence<kIsas>()), DPT_OF_EACH_ISA(add_linear),
            DPT_OF_EACH_ISA(add_sums), DPT_OF_EACH_ISA(add_updates), DPT_OF_EACH_ISA(add_gathers)});
}

}  // namespace

const SimdKernels& simd_kernels() {
  static const SimdKernels& best = kernels_of(runs(Isa::avx512) ? Isa::avx512
                                              : runs(Isa::avx2) ? Isa::avx2
                                                                : Isa::baseline);
  return best;
}

const SimdKernels* simd_kernels(std::string_view isa) {
  for (const Isa its : {Isa::baseline, Isa::avx2, Isa::avx512})
    if (isa == kNames[static_cast<size_t>(its)]) return runs(its) ? &kernels_of(its) : nullptr;
  return nullptr;
}

}  // namespace dpt
