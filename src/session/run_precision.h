// RunPrecision: the number formats of a run, and how its loss is scaled.
#pragma once

#include <string>

#include "backend/cpu/bf16_products.h"
#include "graph/passes/precision.h"
#include "optim/gradient_scaler.h"
#include "spec/spec.h"

namespace dpt {

struct RunPrecision {
  PrecisionPolicy policy;
  ScalerSettings scaler;
  Bf16Products products = Bf16Products::automatic;  // on CPUs
  bool tf32 = false;  // matrix products on GPUs round f32 factors to TF32
};

// Throws Error{device} if the device does not compute in the spec's precision.
RunPrecision make_precision(const Spec& spec, bool on_gpu);

// The instructions that decide the bits of a run on CPUs: "avx512", or "avx512 and VDPBF16PS" in
// bf16 where that instruction is used.
std::string instructions_for_products(const Spec& spec);

}  // namespace dpt
