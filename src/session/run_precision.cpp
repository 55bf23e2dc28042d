#include "session/run_precision.h"

#include "backend/cpu/half_kernels.h"
#include "backend/cpu/simd/simd.h"
#include "base/fail.h"
#include "optim/precision.h"

namespace dpt {

namespace {

Bf16Products products_of(const MixedPrecision& mixed) {
  if (mixed.products == MixedPrecision::Products::fma) return Bf16Products::fma;
  return mixed.products == MixedPrecision::Products::bf16 ? Bf16Products::instruction
                                                          : Bf16Products::automatic;
}

void check_products(Bf16Products asked) {
  if (asked != Bf16Products::instruction) return;
  if (const std::string reason = refuses_instruction(asked); !reason.empty())
    fail(Fault::device,
         "`products: bf16` multiplies by VDPBF16PS, but {}. Leave `products` out, or write "
         "`products: fma`",
         reason);
}

}  // namespace

RunPrecision make_precision(const Spec& spec, bool on_gpu) {
  RunPrecision out;
  const auto& type = *static_cast<const PrecisionType*>(spec.precision.what);
  out.tf32 = type.name == "tf32";
  if (out.tf32 && !on_gpu)
    fail(Fault::device,
         "precision 'tf32' is for CUDA devices; CPUs do not round the factors of fp32 products. "
         "Leave `precision` out");
  if (!type.mixed) return out;
  const MixedPrecision mixed = type.mixed(spec.precision.settings);
  out.policy = {.level = mixed.level,
                .half = type.dtype,
                .cuda_lists = mixed.cuda_lists.value_or(on_gpu),
                .scales = mixed.scaler.on};
  if (!out.policy.on()) return out;
  out.scaler = mixed.scaler;
  if (!on_gpu) check_products(out.products = products_of(mixed));
  if (!on_gpu && !computes_in(type.dtype) && !mixed.emulate)
    fail(Fault::device,
         "precision '{0}' would be emulated on this CPU, which is slower than fp32: {1}. To study "
         "what it does, write `precision: {{{0}: {{emulate: true}}}}`",
         type.name,
         type.dtype == DType::bf16 ? "this CPU has no AVX512-BF16"
                                   : "no kernel for CPUs computes in it");
  return out;
}

std::string instructions_for_products(const Spec& spec) {
  const std::string fp32 = simd_kernels().name;
  const auto& type = *static_cast<const PrecisionType*>(spec.precision.what);
  if (type.dtype != DType::bf16) return fp32;
  const Bf16Products asked = products_of(type.mixed(spec.precision.settings));
  if (refuses_tiles(asked).empty()) return fp32 + " and AMX";
  return refuses_instruction(asked).empty() ? fp32 + " and VDPBF16PS" : fp32;
}

}  // namespace dpt
