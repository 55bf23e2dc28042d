// The numbers of a step: what its loss divides by, and its result. The same on CPUs and GPUs.
#pragma once

#include <cstdint>

#include "engine/step_executor.h"
#include "session/session.h"

namespace dpt {

// The divisor of the loss over so many samples. 1 if the loss is a sum, or if the targets determine
// the divisor.
inline double natural_divisor(const CompiledModel& model, int64_t samples) {
  if (model.divisor == Divisor::one || model.divisor == Divisor::targets) return 1;
  return static_cast<double>(samples * model.terms_per_sample);
}

// Whether a step must report the mean over rank 0's own samples (`log.loss: rank0`).
inline bool reports_rank0_loss(const Spec& spec, const Devices& devices,
                               const CompiledModel& model) {
  return devices.topology.ranks > 1 && devices.topology.replicas() > 1 &&
         model.divisor != Divisor::one && spec.log.loss == "rank0";
}

// Sums over all shards of a step.
struct StepSums {
  double loss = 0;     // terms / divisor
  double divisor = 1;  // what the loss was divided by
  // The same sum over rank 0's shards, and their part of the divisor. Only read if
  // reports_rank0_loss().
  double rank0_loss = 0, rank0_divisor = 0;
};

// The result of a step with these sums: loss, weight, rank0_loss, empty, finite, and, if only the
// loss overflowed, overflowed. `norm` and `stop` are left 0.
StepResult result_of(const Session& session, const StepSums& sums);

}  // namespace dpt
