// The rows of conversions between floats and halves.
#include "backend/cpu/half_kernels.h"

#include <fmt/format.h>

#include "backend/cpu/kernels.h"
#include "backend/cpu/simd/halves.h"
#include "base/half.h"
#include "graph/attrs.h"

namespace dpt {
namespace {

const HalfKernels& simd() {
  static const HalfKernels& kernels = half_simd(simd_kernels().isa);
  return kernels;
}

float* floats(const TensorView& v) { return reinterpret_cast<float*>(v.data); }
size_t elements(const TensorView& v) { return static_cast<size_t>(v.desc.shape.elements()); }

class ToBf16 : public Kernel {
  void run(const KernelArgs& a) override {
    simd().to_bf16(floats(a.in[0]), a.out[0].as<uint16_t>().data(), elements(a.in[0]));
  }
};

class FromBf16 : public Kernel {
  void run(const KernelArgs& a) override {
    simd().from_bf16(a.in[0].as<uint16_t>().data(), floats(a.out[0]), elements(a.in[0]));
  }
};

class Round : public Kernel {
 public:
  explicit Round(DType type) : round_(type == DType::bf16 ? simd().round_bf16 : simd().round_f16) {}
  void run(const KernelArgs& a) override {
    round_(floats(a.in[0]), floats(a.out[0]), elements(a.in[0]));
  }

 private:
  void (*round_)(const float*, float*, size_t);
};

class Scale : public Kernel {
  void run(const KernelArgs& a) override {
    simd().scale(floats(a.in[0]), *floats(a.in[1]), floats(a.out[0]), elements(a.in[0]));
  }
};

std::string refuses_cast(const KernelQuery& q) {
  const DType from = q.in[0].dtype, to = q.out[0].dtype;
  return (from == DType::f32 && to == DType::bf16) || (from == DType::bf16 && to == DType::f32)
             ? ""
             : fmt::format("it does not make {} of {}", name_of(to), name_of(from));
}

std::string refuses(const KernelQuery& q) {
  return q.in[0].dtype == DType::f32 ? "" : "it computes in f32";
}

}  // namespace

std::vector<KernelType> half_kernels() {
  const std::string_view isa = simd_kernels().name;
  using Made = std::unique_ptr<Kernel>;
  std::vector<KernelType> out = {
      {"cast", isa, refuses_cast,
       [](const KernelQuery& q) -> Made {
         if (q.out[0].dtype == DType::bf16) return std::make_unique<ToBf16>();
         return std::make_unique<FromBf16>();
       }},
      {"round_to", isa, refuses,
       [](const KernelQuery& q) -> Made {
         return std::make_unique<Round>(std::any_cast<const Cast&>(q.attrs).dtype);
       }},
      {"scale", isa, refuses,
       [](const KernelQuery&) -> Made { return std::make_unique<Scale>(); }}};
  for (KernelType& row : out) row.by_sample = true;
  return out;
}

bool computes_in(DType half) {
#if defined(__x86_64__)
  return half == DType::bf16 && simd_kernels().isa == Isa::avx512 &&
         __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

void round_weights(DType half, float* x, size_t n) {
  (half == DType::bf16 ? simd().round_bf16 : simd().round_f16)(x, x, n);
}

}  // namespace dpt
