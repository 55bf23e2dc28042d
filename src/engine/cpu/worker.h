// One CPU worker: its place in the run, and what it owns. The classes that execute its plan share
// it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "comm/team.h"
#include "engine/cpu/worker_clocks.h"
#include "engine/stages_of_device.h"
#include "session/buffers.h"
#include "session/session.h"
#include "session/update_partition.h"

namespace dpt {

class HostExchange;

// Thread: the worker's. REQUIRES: all references outlive it.
struct CpuWorker {
  // clock, trace: this worker's measurements; null: none.
  CpuWorker(const Session& session, const Buffers& buffers, Team team, int number,
            PlanStepClock* clock = nullptr, Trace* trace = nullptr);
  CpuWorker(const CpuWorker&) = delete;
  CpuWorker& operator=(const CpuWorker&) = delete;

  const Session& session;
  const Buffers buffers;  // of its replica, if replicas own their weights
  Team team;
  const int number;             // over all hosts
  const int team_number;        // among the workers of this host, which are the team
  const StagesOfDevice stages;  // of this worker's device
  // Indices of the shard groups that this worker computes, and whose loss it computes.
  std::vector<int> own, own_loss;
  const std::span<const UpdatePiece> share;  // the parameters that it updates
  // Shards whose gradients its update sums, and workers with whom it shares that update: all, or
  // those of its replica if replicas own their weights.
  const Rows summed_shards, updating_workers;
  WorkerClocks clocks;

  int shard_groups() const { return static_cast<int>(session.model.shard_groups.size()); }
  Rows shards(int group) const { return session.model.shard_groups[static_cast<size_t>(group)]; }
  // Whether its update sums the gradients of this shard group.
  bool sums(int group) const {
    return summed_shards.begin <= shards(group).begin && shards(group).begin < summed_shards.end;
  }
  bool has_fused_gradients() const { return tile_elements(share) > 0; }
  // The worker of the team with the same shards on another device of the replica.
  int on_device(int device) const {
    return team_number + (device - stages.device()) * session.devices.topology.workers_per_device;
  }
  // Of all workers of this host, or of its rank, in the plan: measured.
  void barrier(PlanStep::Scope scope = PlanStep::Scope::all);

  HostExchange* exchange = nullptr;  // with several hosts, on the leader
  // With several hosts: calls f(exchange) on the leader between two barriers.
  template <class F>
  void among_hosts(F f) {
    if (session.devices.topology.hosts() == 1) return;
    team.barrier(team_number);
    if (exchange) f(*exchange);
    team.barrier(team_number);
  }
};

}  // namespace dpt
