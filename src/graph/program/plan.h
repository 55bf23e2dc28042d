// A training step as a list of steps, made before the first batch. All workers have the same plan.
// Parallel modes rewrite it, and `dptrain plan` prints it as stable text.
//
// The global batch is split into shards. A Program (graph/program/program.h) is what is computed
// for a shard group. A Plan says when the parts of programs run, on which workers, and where
// barriers are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dpt {

// What a worker does in a stage.
enum class Action {
  load,          // gather the shard's samples, convert and transform them: input and target
  load_targets,  // targets only, for the prologue
  draw_masks,    // draw dropout masks from PyTorch's generator, in PyTorch's order
  prologue,      // run the nodes of this part
  forward,
  loss,
  backward,
  gather,       // outputs to the loss's device; memory is shared, so nothing is copied
  scatter,      // gradients of the outputs back to their devices
  sum_divisor,  // sum over shards of what the loss divides by
  sum_loss,     // sum over shards; a non-finite loss ends the run before the update
  compress,     // convert the shard's stored gradients to halves, which other workers read
  sum_squares,  // of the summed gradients, for clipping by norm and for measurements
  // Sum gradients over shards in the fixed tree and run the optimizer, in one pass over the
  // worker's partition of the parameters
  update
};

// An operation of a pipeline (graph.h, Note [stages]): the forward or the backward part of one
// stage for one chunk (micro-batch). The forward operation of the last stage includes the loss.
struct StageOp {
  int stage = 0, chunk = 0;
  bool backward = false;
  bool operator==(const StageOp&) const = default;
};
// The operations of each device of a replica, in execution order.
using PipelineSchedule = std::vector<std::vector<StageOp>>;

// A step of a plan: actions, the workers that run them, and whether a barrier follows. Not to be
// confused with a pipeline's stage (graph.h, Note [stages]).
struct PlanStep {
  enum class Actor {
    shards,       // for each shard: its owner runs all actions
    loss_device,  // for each shard: a worker of the device that computes the loss
    // For each shard: one worker per device runs that device's operations of the schedule, each as
    // soon as the neighboring stage has finished the chunk
    pipeline,
    workers,  // each worker once, on its own range of elements
    first     // the first worker of each process
  };
  // Whether a barrier of all workers follows. between: only if another micro-batch follows.
  enum class Barrier { never, between, always };
  Actor actor = Actor::shards;
  std::vector<Action> actions;
  Barrier barrier = Barrier::never;
  // `sum_squares` and the barrier only take place in steps that are measured (PlanQuery::measures).
  bool when_measured = false;
};

struct Plan {
  std::string mode = "single";
  std::vector<PlanStep> prologue;  // once per step, over all micro-batches
  std::vector<PlanStep> micro;     // for each micro-batch
  std::vector<PlanStep> update;    // once per step
  int forward_sync_points = 0,
      backward_sync_points = 0;       // sync points, program.h, Note [sync points]
  bool sync_across_replicas = false;  // sync points sum over all replicas, not only over their own
  bool accumulates = false;           // a step may have several micro-batches
  PipelineSchedule schedule;          // covers all micro-batches; empty: one stage
  int sync_points() const { return forward_sync_points + backward_sync_points; }
  int sync_points(Action action) const;
  // Barriers of a step that is not measured, without those at sync points.
  int barriers(int64_t micro_batches) const;
  bool splits_shards() const;  // a shard's activations must outlive a plan step
  std::string str() const;
};

// What basic_plan() must know. It returns the plan of `single`, which has no communication; other
// modes rewrite it.
struct PlanQuery {
  bool divisor_from_targets = false;
  // Gradients are needed before the update: for clipping, or to detect overflow
  bool clip_norm = false;
  bool measures = false;  // some steps need them for `log.grad_norms` or `log.noise_scale`
  bool torch_masks = false;
  bool compresses = false;
  int forward_sync_points = 0, backward_sync_points = 0;
  bool sync_across_replicas = false, accumulates = false;  // as in Plan
};
Plan basic_plan(const PlanQuery& query);

// Turns the stages that run shard by shard into pipeline stages; `schedule` covers all
// micro-batches.
void run_in_stages(Plan& plan, PipelineSchedule schedule);

}  // namespace dpt
