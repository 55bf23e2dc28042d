// Executor: evaluation, and the non-finite check.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "engine/cpu/sync_points.h"
#include "engine/evaluation.h"
#include "engine/nonfinite_check.h"
#include "graph/operator.h"

namespace dpt {
void Executor::begin_evaluation(int group, const Micro& micro, std::span<const uint32_t> order,
                                int64_t batch, int slot) {
  Binding* b = binding(group, micro, kTest, slot);
  if (!b) return;
  const auto mine = samples(group, micro, order);
  const Rows shards = session_.shard_groups[static_cast<size_t>(group)];
  if (has_stage(0)) {
    const BatchLease lease(samples_.test, batch, 0, shards, team_);
    load_inputs(*session_.test_loader, mine, 0, lease.bytes(), *b);
  }
  if (!has_stage(last_stage())) return;
  load_targets(*session_.test_loader, mine, *b);
  b->set_divisor(1);
  b->run(Part::prologue, last_stage());
}

void Executor::end_evaluation(int group, const Micro& micro, int slot) {
  Binding* b = binding(group, micro, kTest, slot);
  if (!b || !has_stage(last_stage())) return;
  b->run(Part::loss, last_stage());
  const Rows shards = session_.shard_groups[static_cast<size_t>(group)];
  for (int64_t s = shards.begin; s < shards.end; ++s) {
    const int64_t n = micro[static_cast<size_t>(s)].rows.count();
    if (n == 0) continue;
    const auto at = static_cast<size_t>(s - shards.begin);
    ShardResult& r = buffers_.evaluation(static_cast<int>(s));
    r.loss += b->loss(at);
    r.weight += session_.divisor == Divisor::targets ? b->target_weight(at) : natural_divisor(n);
    if (b->has_correct()) r.correct += b->correct(at);
    const Graph& graph = b->program().graph;
    if (session_.metrics.size() > 0)
      session_.metrics.add(b->view(graph.output, at), b->view(graph.target, at),
                           buffers_.metrics(static_cast<int>(s)));
  }
}

Evaluation Executor::evaluate(const BatchesDone& done) {
  const BatchPartitioner& batches = *session_.test_batches;
  const std::vector<uint32_t> order = session_.test_order();
  PrefetchStream* const prefetch = samples_.test;
  if (prefetch != nullptr) {
    if (worker_ % session_.topology.workers_per_rank() == 0) prefetch->begin(order);
    team_.rank_barrier(worker_);
  }
  for (int g : own_) {
    if (!has_stage(last_stage())) break;
    const Rows shards = session_.shard_groups[static_cast<size_t>(g)];
    for (int64_t s = shards.begin; s < shards.end; ++s)
      clear_evaluation(buffers_, static_cast<int>(s));
  }
  StepRows rows;
  if (!session_.plan.schedule.empty()) evaluate_in_stages(order, done);
  for (int64_t b = 0; b < batches.steps() && session_.plan.schedule.empty(); ++b) {
    batches.step(b, rows);
    const Micro& micro = rows.micro[0];
    if (session_.test_sync_points == 0) {
      for (int g : own_) {
        begin_evaluation(g, micro, order, b);
        if (Binding* bound = binding(g, micro, kTest)) bound->run(Part::forward);
        end_evaluation(g, micro);
      }
      if (done) done(b + 1);
      continue;
    }
    for (int g : own_) begin_evaluation(g, micro, order, b);
    run_in_pieces(session_.test_sync_points, Part::forward, micro, kTest,
                  [](int, Binding& bound, const Binding::Piece& piece) { bound.run(piece); });
    for (int g : own_) end_evaluation(g, micro);
    if (waits_at_sync_points_) team_.barrier(worker_);  // the next batch overwrites the sums
    if (done) done(b + 1);
  }
  team_.barrier(worker_);
  const Evaluation out = sum_evaluation(session_, buffers_);
  team_.barrier(
      worker_);  // no worker may begin the next evaluation before all have read the results
  return out;
}

// Finds, for each of the worker's shard groups, the first forward instruction with a non-finite
// result.
void Executor::check_finite(int micro, const StepInput& input) {
  const Micro& rows = input.rows->micro[static_cast<size_t>(micro)];
  const auto look = [&](int group, Binding& b, const Binding::Piece& piece) {
    const Rows shards = session_.shard_groups[static_cast<size_t>(group)];
    NonFinite& found = buffers_.non_finite(static_cast<int>(shards.begin));
    const int64_t at = b.run_until_not_finite(piece);
    if (at >= 0 && found.instruction < 0) found.instruction = micro * kForward + at;
  };
  for (int g : own_) load(g, input, micro, kTrain, nullptr);
  for (int stage = 0; stage <= last_stage(); ++stage) {
    const int sync_points = session_.graph.sync_points(Part::forward, stage);
    if (has_stage(stage)) {
      for (int g : own_)
        if (Binding* b = binding(g, rows, kTrain); b && sync_points == 0)
          look(g, *b, {.part = Part::forward, .stage = stage, .piece = 0});
      run_in_pieces(sync_points, Part::forward, rows, kTrain, look, stage);
    }
    if (last_stage() > 0 || (sync_points > 0 && waits_at_sync_points_)) team_.barrier(worker_);
  }
}

NonFiniteReport Executor::find_non_finite(const StepInput& input) {
  const Graph& graph = session_.graph;
  for (int g : own_) {
    if (device_ != 0) break;  // one device of the replica suffices: all have the same samples
    const Rows shards = session_.shard_groups[static_cast<size_t>(g)];
    for (int64_t s = shards.begin; s < shards.end; ++s)
      buffers_.non_finite(static_cast<int>(s)) = {};
    NonFinite& found = buffers_.non_finite(static_cast<int>(shards.begin));
    for (const Micro& rows : input.rows->micro)
      check_samples_finite(session_.train, samples(g, rows, input.order), found);
    for (size_t p = 0; p < graph.parameters.size() && found.parameter < 0; ++p) {
      const float* w = buffers_.weights() + session_.layout.offset[p];
      const int64_t n = graph[graph.parameters[p]].desc.shape.elements();
      if (!std::all_of(w, w + n, [](float x) { return std::isfinite(x); }))
        found.parameter = static_cast<int64_t>(p);
    }
  }
  if (session_.topology.devices_per_replica > 1) team_.barrier(worker_);
  for (int m = 0; m < static_cast<int>(input.rows->micro.size()); ++m) check_finite(m, input);
  team_.barrier(worker_);
  const NonFinite first = first_non_finite(buffers_, session_.topology.shards);
  team_.barrier(worker_);
  return describe_non_finite(session_, first);
}

}  // namespace dpt
