#include "engine/cpu/pipeline.h"

namespace dpt {

void CpuPipeline::run(const StepInput& input) {
  const Plan& plan = worker_.session.plan;
  for (const PlanStep& s : plan.stages[static_cast<size_t>(worker_.stages.device())]) {
    if (s.op == PlanOp::wait) {
      posts_.wait_for(s);
      continue;
    }
    worker_.clocks.traced(s, s.chunk, [&] { do_step(s, input); });
    if (s.op == PlanOp::record) worker_.clocks.mark(PlanStepClock::compute);
  }
  posts_.end_step();
}

void CpuPipeline::do_step(const PlanStep& s, const StepInput& input) {
  if (s.op == PlanOp::load) return load(s, input);
  if (s.op == PlanOp::run) return run_stage(s, input);
  posts_.post();  // record
}

void CpuPipeline::load(const PlanStep& s, const StepInput& input) {
  const auto chunk = static_cast<size_t>(s.chunk);
  const ProgramKind kind = program_kind(worker_.session, chunk);
  for (const int g : worker_.own) {
    Binding* b = bindings_.find(g, input.rows->micro[chunk], kind, chunk);
    if (!b) continue;
    input_.set_context(*b, g, input, chunk);
    if (s.stage == 0) input_.inputs_timed(*b, g, input, chunk);
    if (s.stage == worker_.stages.last()) input_.targets(*b, g, input, chunk);
  }
}

void CpuPipeline::run_stage(const PlanStep& s, const StepInput& input) {
  const auto chunk = static_cast<size_t>(s.chunk);
  if (s.part == Part::loss) {
    for (const int g : worker_.own) losses_.run(g, chunk, input);
    return;
  }
  sync_points_.run_stage({.part = s.part,
                          .micro = input.rows->micro[chunk],
                          .kind = program_kind(worker_.session, chunk),
                          .stage = s.stage,
                          .chunk = chunk});
  if (s.part != Part::backward || chunk > 0) return;
  for (const int g : worker_.own) gradients_.clear_empty(g, input.rows->micro[0], s.stage);
}

}  // namespace dpt
