// The CPU implementations of conversions between f32 and halves.
#include "backend/cpu/half_kernels.h"

#include <fmt/format.h>

#include "backend/cpu/kernels.h"
#include "backend/cpu/simd/halves.h"
#include "backend/cpu/support.h"
#include "graph/attrs.h"

namespace dpt {
namespace {

const HalfKernels& simd() {
  static const HalfKernels& kernels = half_simd(simd_kernels().isa);
  return kernels;
}

std::string refuses_cast(const KernelQuery& q) {
  const DType from = q.in[0].dtype, to = q.out[0].dtype;
  return (from == DType::f32 && to == DType::bf16) || (from == DType::bf16 && to == DType::f32)
             ? ""
             : fmt::format("it cannot produce {} from {}", name_of(to), name_of(from));
}

std::string refuses(const KernelQuery& q) { return not_f32(q.in[0]); }

std::unique_ptr<Kernel> prepare_cast(const KernelQuery& q) {
  const size_t n = elements(q.in[0]);
  if (q.out[0].dtype == DType::bf16)
    return call([n](const KernelArgs& a) {
      simd().to_bf16(data(a.in[0]), a.out[0].as<uint16_t>().data(), n);
    });
  return call([n](const KernelArgs& a) {
    simd().from_bf16(a.in[0].as<uint16_t>().data(), data(a.out[0]), n);
  });
}

std::unique_ptr<Kernel> prepare_round(const KernelQuery& q) {
  return call([n = elements(q.in[0]), round = rounding(settings<Cast>(q).dtype)](
                  const KernelArgs& a) { round(data(a.in[0]), data(a.out[0]), n); });
}

std::unique_ptr<Kernel> prepare_scale(const KernelQuery& q) {
  return call([n = elements(q.in[0])](const KernelArgs& a) {
    simd().scale(data(a.in[0]), *data(a.in[1]), data(a.out[0]), n);
  });
}

}  // namespace

std::vector<KernelType> half_kernels() {
  return {simd_row("cast", refuses_cast, prepare_cast),
          simd_row("round_to", refuses, prepare_round), simd_row("scale", refuses, prepare_scale)};
}

bool computes_in(DType half) {
#if defined(__x86_64__)
  return half == DType::bf16 && simd_kernels().isa == Isa::avx512 &&
         __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

void round_weights(DType half, float* x, size_t n) { rounding(half)(x, x, n); }

Rounding rounding(DType half) {
  return half == DType::bf16 ? simd().round_bf16 : half == DType::f16 ? simd().round_f16 : nullptr;
}

void to_halves(DType half, const float* x, uint16_t* y, size_t n) {
  (half == DType::bf16 ? simd().to_bf16 : simd().to_f16)(x, y, n);
}

void from_halves(DType half, const uint16_t* x, float* y, size_t n) {
  (half == DType::bf16 ? simd().from_bf16 : simd().from_f16)(x, y, n);
}

}  // namespace dpt
