// A training step as a list of things to do, made before the first batch. Every worker has the same
// plan; parallel modes are rewrites of it. It prints as stable text: `dptrain plan`.
//
// The global batch is cut into shards. A Program (graph/program/program.h) is what is computed for
// some of them. A Plan says when the parts of programs are run, by whom, and where workers meet.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dpt {

// What a stage is made of.
enum class Action {
  feed,          // gather the shard's rows of the batch, convert, transform: input and target
  feed_targets,  // targets only, for the prologue
  draw_masks,    // dropout's masks, by torch's generator, in its order
  prologue,      // the nodes of that part
  forward,
  loss,
  backward,
  gather,       // outputs to the loss's device: one memory, so nothing is copied
  scatter,      // their gradients back
  sum_divisor,  // what the loss divides by, summed over all shards
  sum_loss,     // over all shards; a loss that is no number ends the run before the update
  compress,     // the shard's stored gradients, into the halves that others read
  sum_squares,  // of the summed gradients, for clipping by norm
  update        // sum the shards' gradients in the fixed tree, then the optimizer, in one pass over
                // the worker's share of the parameters
};

// In a pipeline (graph.h, note [stages]) a device does for one micro-batch, or chunk, what belongs
// to a stage: its forward part, and the loss after the last one, or its backward part.
struct StageOp {
  int stage = 0, chunk = 0;
  bool backward = false;
  bool operator==(const StageOp&) const = default;
};
// Of each device of a replica, in its order.
using PipelineSchedule = std::vector<std::vector<StageOp>>;

struct Stage {
  enum class Who {
    shards,       // for each shard in turn: its owner runs all actions
    loss_device,  // for each shard: a worker of the device that computes the loss
    pipeline,     // for each shard: the worker of each device does its ops of the schedule, each as
                  // soon as the stage before it (behind it: backward) is done with the chunk
    workers,      // every worker once, on its own range of elements
    first         // the first worker of each process
  };
  // Afterwards all workers meet; `between`: only where another micro-batch follows.
  enum class Meet { never, between, always };
  Who who = Who::shards;
  std::vector<Action> actions;
  Meet meet = Meet::never;
};

struct Plan {
  std::string mode = "single";
  std::vector<Stage> prologue;              // once a step, over all micro-batches
  std::vector<Stage> micro;                 // for each micro-batch
  std::vector<Stage> update;                // once a step
  int forward_cuts = 0, backward_cuts = 0;  // note [cuts]
  bool cuts_sum_all = false;                // over all replicas; else over each one's shards
  bool accumulates = false;                 // a step may have several micro-batches
  PipelineSchedule schedule;                // over all micro-batches; empty: there is one stage
  int cuts() const { return forward_cuts + backward_cuts; }
  int cuts(Action action) const;
  int meetings(int64_t micro_batches) const;  // of a step, but for those at cuts
  bool splits_shards() const;                 // a shard's activations outlive a stage
  std::string str() const;
};

// The plan of one worker that has the whole batch: no communication. Modes rewrite it.
struct PlanQuery {
  bool divisor_from_targets = false;
  bool clip_norm = false;  // or an overflow: all gradients are looked at before any is used
  bool torch_masks = false;
  bool compresses = false;
  int forward_cuts = 0, backward_cuts = 0;
  bool cuts_sum_all = false, accumulates = false;  // as in Plan
};
Plan basic_plan(const PlanQuery& query);

// What owners of shards do for each micro-batch, the devices of the schedule do for all.
void run_in_stages(Plan& plan, PipelineSchedule schedule);

}  // namespace dpt
