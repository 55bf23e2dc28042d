#include "engine/cpu/sync_points.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/fail.h"
#include "comm/tree.h"
#include "engine/cpu/host_exchange.h"

namespace dpt {

namespace {

// What each shard sums before the sync point at which a piece of a stage ends.
ValueId sums_at(const Program& program, Part part, int stage, int piece) {
  for (const Instruction& i : program.part(part)) {
    const GraphNode& node = program.graph.nodes[i.node];
    if (i.sync_point && node.stage == stage && piece-- == 0) return node.in[0];
  }
  fail(Fault::failed, "a piece of a stage that ends at no sync point");
}

}  // namespace

SyncPoints::SyncPoints(CpuWorker& worker, const BindingTable& bindings)
    : worker_(worker),
      bindings_(bindings),
      waits_(worker.session.devices.topology.sync_needs_barrier(
          worker.session.plan.sync_across_replicas)),
      sums_(worker.buffers.sizes().sums / sizeof(double) *
            static_cast<size_t>(worker.session.devices.topology.shards)),
      parts_(static_cast<size_t>(worker.session.devices.topology.shards)) {
  const Topology& topology = worker.session.devices.topology;
  if (topology.devices_per_replica > 1 || topology.replicas_own_weights()) partners_ = partners();
}

// The workers with whom this one sums: those with the same stages, in its replica or, with
// sync_batch_norm, in all replicas.
std::vector<int> SyncPoints::partners() const {
  const Topology& topology = worker_.session.devices.topology;
  std::vector<int> out;
  const Rows team = topology.workers_of_host(topology.host);
  for (int w = static_cast<int>(team.begin); w < team.end; ++w)
    if (topology.device_of(w) == worker_.stages.device() &&
        (worker_.session.settings.spec.sync_batch_norm ||
         topology.replica(w) == topology.replica(worker_.number)))
      out.push_back(w - static_cast<int>(team.begin));
  return out;
}

void SyncPoints::wait() {
  if (!waits_) return;
  worker_.clocks.mark(PlanStepClock::compute);
  if (partners_.empty()) return worker_.barrier();
  worker_.team.barrier_among(worker_.team_number, partners_);
  worker_.clocks.mark(PlanStepClock::waiting);
}

std::pair<int, int> SyncPoints::pieces(int count, const Run& run) const {
  if (run.range.is_whole()) return {0, count};
  const Program& any = programs_of(worker_.session, run.kind).begin()->second;
  const std::vector<Instruction>& all = any.part(run.part);
  const auto before = [&](size_t end) {
    int out = 0;
    for (size_t i = 0; i < std::min(end, all.size()); ++i)
      out += all[i].sync_point && any.graph.nodes[all[i].node].stage == run.stage ? 1 : 0;
    return out;
  };
  return {before(run.range.begin), before(run.range.end)};
}

// With several hosts and sums over all replicas, leaders exchange the sums of their shards.
void SyncPoints::wait(const At& at) {
  wait();
  const Session& session = worker_.session;
  if (session.devices.topology.hosts() == 1 || !session.settings.spec.sync_batch_norm) return;
  if (worker_.exchange) {
    // Every program has the sums in the same place, whether this worker has samples or not.
    const Program& any = programs_of(session, at.run->kind).begin()->second;
    const ValueId sums = sums_at(any, at.run->part, at.run->stage, at.piece);
    worker_.exchange->results().gather_sums(
        any.location[static_cast<size_t>(sums)].offset,
        static_cast<size_t>(any.graph[sums].desc.shape.elements()));
  }
  wait();
}

void SyncPoints::sum(int group, const Binding::SyncPoint& sync_point, const MicroBatch& micro) {
  const Session& session = worker_.session;
  const int first = static_cast<int>(worker_.shards(group).begin);
  const Rows shards =
      session.devices.topology.replica_of(first, session.settings.spec.sync_batch_norm);
  const size_t count = sync_point.sum.size();
  for (int64_t s = shards.begin; s < shards.end; ++s) {
    double* const part = sums_.data() + static_cast<size_t>(s - shards.begin) * count;
    const std::byte* const from = worker_.buffers.sums(static_cast<int>(s)) + sync_point.offset;
    const bool has_rows = micro[static_cast<size_t>(s)].rows.count() > 0;
    if (has_rows && memory_watch) memory_watch->read(from, count * sizeof(double));
    if (has_rows)
      std::memcpy(part, from, count * sizeof(double));
    else
      std::fill_n(part, count, 0.0);
    parts_[static_cast<size_t>(s - shards.begin)] = part;
  }
  sum_tree(std::span<double* const>(parts_.data(), static_cast<size_t>(shards.count())), 0, count);
  std::ranges::copy_n(sums_.data(), static_cast<std::ptrdiff_t>(count), sync_point.sum.begin());
}

void SyncPoints::run_stage(const Run& run) {
  const Graph& graph = run.kind == ProgramKind::test || run.kind == ProgramKind::train_last
                           ? programs_of(worker_.session, run.kind).begin()->second.graph
                           : worker_.session.model.graph;
  const int count = graph.sync_points(run.part, run.stage);
  if (count == 0) {
    for (const int g : worker_.own)
      if (Binding* b = bindings_.find(g, run.micro, run.kind, run.chunk))
        b->run(run.part, run.stage);
    return;
  }
  this->run(count, run);
  wait();  // all must read the last sums before the next chunk overwrites them
}

}  // namespace dpt
