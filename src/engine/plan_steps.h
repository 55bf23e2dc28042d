// When an instruction of the plan is executed: the same on CPUs and GPUs.
#pragma once

#include <cstddef>

#include "graph/program/plan.h"

namespace dpt {

// Whether a step with this `when` is executed in micro-batch number `micro`. averaged: replicas
// average their weights after the step (StepInput::averaged).
constexpr bool happens(PlanStep::When when, size_t micro, size_t micro_batches, bool measured,
                       bool averaged = false) {
  switch (when) {
    case PlanStep::When::between:
      return micro + 1 < micro_batches;
    case PlanStep::When::last:
      return micro + 1 == micro_batches;
    case PlanStep::When::later:
      return micro > 0;
    case PlanStep::When::measured:
      return measured;
    case PlanStep::When::averaged:
      return averaged;
    case PlanStep::When::always:
      break;
  }
  return true;
}

}  // namespace dpt
