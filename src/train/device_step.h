// What a GPU has in its memory of the step that it does, so that a captured step can be done again
// as it is.
#pragma once

#include <cstddef>

#include "backend/cuda/kernels/step_state.h"

namespace dpt {

struct DeviceStep {
  cuda::StepState state;
  float divisor, scale;               // of the loss
  alignas(16) std::byte formula[96];  // the optimizer's, in f32
};

}  // namespace dpt
