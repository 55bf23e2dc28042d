#include "engine/cpu/worker.h"

#include "engine/cpu/memory_watch.h"

namespace dpt {
namespace {

Buffers buffers_of(const Topology& topology, const Buffers& shared, int worker) {
  return topology.replicas_own_weights() ? shared.of_replica(topology.replica(worker)) : shared;
}

}  // namespace

CpuWorker::CpuWorker(const Session& s, const Buffers& shared, Team whole, int index,
                     PlanStepClock* clock, Trace* trace)
    : session(s),
      buffers(buffers_of(s.devices.topology, shared, index)),
      team(whole),
      number(index),
      team_number(index - static_cast<int>(
                              s.devices.topology.workers_of_host(s.devices.topology.host).begin)),
      stages(s.model.graph, s.devices.topology.device_of(index)),
      share(s.shares.workers[static_cast<size_t>(index)]),
      summed_shards(s.devices.topology.shards_with(index)),
      updating_workers(s.devices.topology.workers_with(index)),
      clocks(clock, trace, index) {
  if (memory_watch) memory_watch->opened(s, shared, number);
  for (int g = 0; g < shard_groups(); ++g) {
    const int first = static_cast<int>(shards(g).begin);
    if (s.devices.topology.owner(first, stages.device()) == number) own.push_back(g);
    if (s.devices.topology.loss_owner(first) == number) own_loss.push_back(g);
  }
}

void CpuWorker::barrier(PlanStep::Scope scope) {
  const auto meet = [&] {
    return scope == PlanStep::Scope::rank ? team.rank_barrier(team_number)
                                          : team.barrier(team_number);
  };
  clocks.wait(WaitClock::barriers, [&] { clocks.traced({.op = PlanOp::barrier}, 0, meet); });
  clocks.mark(PlanStepClock::waiting);
}

}  // namespace dpt
