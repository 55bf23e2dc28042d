#include "parallel/stage_lists.h"

#include <algorithm>

#include "parallel/schedule.h"

namespace dpt {
namespace {

using Actor = PlanStep::Actor;

int device_of(const PlanTarget& t, int stage) { return t.stage_device[static_cast<size_t>(stage)]; }

// A step of the operation `op`.
PlanStep step_of(const PlanTarget& t, PlanOp what, const StageOp& op) {
  return {.op = what,
          .actor = t.gpus ? Actor::gpus : Actor::shards,
          .part = op.backward ? Part::backward : Part::forward,
          .stage = op.stage,
          .chunk = op.chunk};
}

// Loads what the operation reads, runs it, and with the last stage's forward part the loss.
void add_run(Plan::Steps& out, const PlanTarget& t, const StageOp& op) {
  const int last = static_cast<int>(t.stage_device.size()) - 1;
  if (!op.backward) out.push_back(step_of(t, PlanOp::load, op));
  out.push_back(step_of(t, PlanOp::run, op));
  if (op.backward || op.stage != last) return;
  out.push_back(step_of(t, PlanOp::run, op));
  out.back().part = Part::loss;
}

// A later chunk's gradients are added on GPUs, after its backward part.
void add_sum(Plan::Steps& out, const PlanTarget& t, const StageOp& op) {
  if (!t.gpus || !op.backward || op.chunk == 0) return;
  out.push_back(step_of(t, PlanOp::add_gradients, op));
}

}  // namespace

Plan::Steps stages_in_shared_memory(const PlanTarget& t, int device) {
  Plan::Steps out;
  const int last = static_cast<int>(t.stage_device.size()) - 1;
  for (const StageOp& op : t.schedule[static_cast<size_t>(device)]) {
    // A forward part follows the previous stage's, a backward part the next stage's.
    const int before = op.backward ? op.stage + 1 : op.stage - 1;
    if (before >= 0 && before <= last && device_of(t, before) != device) {
      out.push_back(
          step_of(t, PlanOp::wait, {.stage = before, .chunk = op.chunk, .backward = op.backward}));
      out.back().device = device_of(t, before);
    }
    add_run(out, t, op);
    add_sum(out, t, op);
    out.push_back(step_of(t, PlanOp::record, op));
  }
  return out;
}

Plan::Steps stages_that_send(const PlanTarget& t, int device) {
  Plan::Steps out;
  for (const StageOp& op : topological_order(t.schedule)) {
    const Part part = op.backward ? Part::backward : Part::forward;
    if (device_of(t, op.stage) == device) {
      if (op.backward) out.push_back(step_of(t, PlanOp::wait, op));
      add_run(out, t, op);
      add_sum(out, t, op);
      if (!op.backward) out.push_back(step_of(t, PlanOp::record, op));
      continue;
    }
    // What the operation copies from or to this device, in the order of its program.
    bool sends = false, receives = false;
    for (const PlanTarget::StageCopy& c : t.copies) {
      if (c.part != part || c.stage != op.stage) continue;
      const bool from_here = c.to == op.stage;
      if (device_of(t, from_here ? c.from : c.to) != device) continue;
      (from_here ? sends : receives) = true;
    }
    if (!sends && !receives) continue;
    out.push_back(step_of(t,
                          sends && receives ? PlanOp::send_receive
                          : sends           ? PlanOp::send
                                            : PlanOp::receive,
                          op));
    out.back().device = device_of(t, op.stage);
  }
  return out;
}

Plan place_stages(Plan plan, const PlanTarget& target) {
  if (target.schedule.empty()) return plan;
  plan.micro.clear();
  plan.schedule = target.schedule;
  // On CPUs each shard's owner knows whether it has the last stage.
  for (PlanStep& s : plan.prologue)
    if (target.gpus) s.device = target.stage_device.back();
  for (int d = 0; d < static_cast<int>(target.schedule.size()); ++d)
    plan.stages.push_back(target.stages_are_processes && target.gpus
                              ? stages_that_send(target, d)
                              : stages_in_shared_memory(target, d));
  return plan;
}

}  // namespace dpt
