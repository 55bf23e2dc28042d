// RunPrecision: the number formats of a run, and how its loss is scaled.
#pragma once

#include "graph/passes/precision.h"
#include "optim/gradient_scaler.h"
#include "spec/spec.h"

namespace dpt {

struct RunPrecision {
  PrecisionPolicy policy;
  ScalerSettings scaler;
  bool tf32 = false;  // matrix products on GPUs round f32 factors to TF32
};

// Throws Error{device} if the device does not compute in the spec's precision.
RunPrecision make_precision(const Spec& spec, bool on_gpu);

}  // namespace dpt
