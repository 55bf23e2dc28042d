#include "engine/gpu/parts.h"

#include "graph/operator.h"

namespace dpt {

// Sums the result of an instruction over replicas if it is a sum at a sync point.
void GpuParts::sum_result(const Program& program, const Instruction& i, const GpuBinding* b) {
  const GraphNode& n = program.graph.nodes[i.node];
  if (n.op->is(Trait::over_shards))
    exchange_->sum_now(b ? b->view(n.out[0]).data : nullptr, program.graph[n.out[0]].desc);
}

void GpuParts::run(Part part, GpuBinding* b, size_t begin, size_t end) {
  const Program& program = program_of(b);
  for (size_t i = begin; i < end; ++i) {
    if (b) b->run_one(part, i);
    if (syncs()) sum_result(program, program.part(part)[i], b);
  }
}

void GpuParts::run_stage(Part part, int stage, GpuBinding* b, ProgramKind kind) {
  if (!syncs()) {
    if (b) b->run(part, stage);
    return;
  }
  const Program& program = program_of(b, kind);
  size_t bound = 0;  // index among the binding's instructions, which are those of this GPU's stages
  for (const Instruction& i : program.part(part)) {
    const int its = program.graph.nodes[i.node].stage;
    if (b && its == stage) b->run_one(part, bound);
    bound += worker_.stages.has(its) ? 1 : 0;
    if (its == stage) sum_result(program, i, b);
  }
}

}  // namespace dpt
