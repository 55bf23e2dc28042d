#include "engine/step_numbers.h"

#include <cmath>

namespace dpt {

StepResult result_of(const Session& s, const StepSums& sums) {
  StepResult out;
  out.loss = out.rank0_loss = sums.loss;
  out.weight = sums.divisor;
  out.empty = s.model.takes_empty_steps && sums.divisor == 0;
  out.finite = out.empty || std::isfinite(sums.loss);
  out.overflowed = s.precision.scaler.on && !out.finite;
  if (reports_rank0_loss(s.settings.spec, s.devices, s.model))
    out.rank0_loss = sums.rank0_loss * sums.divisor / sums.rank0_divisor;
  return out;
}

}  // namespace dpt
