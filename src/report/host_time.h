// Predicts the time of a training step on several hosts (machines) from measured costs of one host
// (engine/cpu/step_costs.h) and a model of the link between them (report/link_model.h).
#pragma once

#include <cstdint>

#include "engine/cpu/step_costs.h"
#include "report/link_model.h"
#include "session/session.h"

namespace dpt {

// How hosts sum gradients and distribute weights.
enum class SumAlgorithm : uint8_t {
  direct,  // what dptrain does: each host exchanges messages with all others
  ring     // for comparison: the same buckets at the same points of the step, passed around a ring
};

// Seconds.
struct HostStepTime {
  double local = 0;     // as on one host: computing, summing and updating, with barriers
  double exchange = 0;  // waiting for other hosts
  double total() const { return local + exchange; }
};

// Follows the instructions of the plan (parallel/host_exchange.h) as a host executes them. Workers
// take the measured time for each of theirs: of a bucket, its share of that of all buckets. What
// leaders begin occupies the link when it is free, in the order of the plan, and arrives later, as
// report/link_model.h says; a `wait` lasts until then. So what is summed and updated while a bucket
// is on its way takes no time of its own. All hosts begin a step at once and are equally fast.
//
// costs: of one host of this session. With one host nothing is exchanged.
HostStepTime predict_host_step(const Session& session, const StepCosts& costs,
                               const LinkModel& link, SumAlgorithm algorithm);

}  // namespace dpt
