// A training step as lists of typed instructions, made before the first batch. The CPU workers and
// the GPUs' hosts execute these lists and nothing else; parallel modes are functions that rewrite
// them (parallel/mode.h); `dptrain plan` prints them as stable text.
//
// The global batch is split into shards. A Program (graph/program/program.h) is what is computed
// for a shard group. A Plan says which parts of programs run when, on which workers, and how
// workers exchange data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace dpt {

// An operation of a pipeline (graph.h, Note [stages]): the forward or the backward part of one
// stage for one chunk (micro-batch). The forward operation of the last stage includes the loss.
struct StageOp {
  int stage = 0, chunk = 0;
  bool backward = false;
  bool operator==(const StageOp&) const = default;
};
// The operations of each device of a replica, in execution order.
using PipelineSchedule = std::vector<std::vector<StageOp>>;

// Elements [begin, end) of the gradients on one GPU, counted from the GPU's first.
struct Bucket {
  size_t begin = 0, end = 0;
  size_t count() const { return end - begin; }
  bool operator==(const Bucket&) const = default;
};

// What a plan step does.
enum class PlanOp : uint8_t {
  load,          // gather the samples, convert and transform them: input and target
  load_targets,  // targets only, for the prologue
  draw_masks,    // draw dropout masks from PyTorch's generator, in PyTorch's order
  // Run the instructions of a part. `until`: from where the step before it in the micro-batch has
  // ended to the last instruction that makes this bucket.
  run,
  add_gradients,    // add the gradients of a later micro-batch to the sum of those before
  round_gradients,  // round gradients to the half of `compress`, where there is no exchange
  compress,         // convert the shard's stored gradients to halves, which other workers read
  gather,           // outputs, or norms, to one device
  scatter,          // gradients of the outputs back to their devices
  barrier,          // of the workers in `scope`
  record,           // mark this point for a later wait, of the exchange or of another device
  wait,             // for the device's recorded operation; of the exchange: for all its sums
  send,             // to, or from, the device that runs the operation {stage, chunk, part}
  receive,
  send_receive,  // in the order of the operation's program
  copy_to_host,  // of a GPU, to memory that all hosts share
  copy_from_host,
  all_reduce,  // by the exchange: NCCL, or the hosts; of weights: their average over replicas
  reduce_scatter,
  all_gather,
  broadcast,
  sum,     // over shards in the fixed tree, over micro-batches, or over the parts of hosts
  decide,  // whether the gradients are used, and how they are scaled
  update   // run the optimizer. CPUs sum gradients over shards in the same pass
};

// What is summed, copied or exchanged.
enum class Quantity : uint8_t {
  none,
  divisor,    // what the loss divides by
  loss,       // of all micro-batches
  squares,    // norm partials of the gradients, for clipping and overflow
  gradients,  // `bucket`: of one bucket; else all
  weights,
  outputs,
  decision,  // the state that follows from `decide`
  results,   // each shard's loss and its part of the divisor, and whether the run shall stop
  parts      // `bucket`: what hosts send of their gradients, for the elements that this host owns
};

// A typed instruction of a plan.
struct PlanStep {
  // Who executes it.
  enum class Actor : uint8_t {
    shards,       // for each shard group: its owner
    loss_device,  // for each shard group: a worker of the device that computes the loss
    workers,      // each worker once, on its own range of elements
    first,        // the first worker of each process
    gpus,         // each GPU's stream
    exchange,     // the stream of each GPU on which NCCL's calls are enqueued
    hosts,        // the thread that controls each GPU
    leaders       // the first worker of each machine, which exchanges data with those of others
  };
  // In which micro-batches or steps it is executed; always: in all.
  enum class When : uint8_t {
    always,
    between,   // after a micro-batch that another one follows
    last,      // in the last micro-batch
    later,     // in all micro-batches but the first
    measured,  // in steps that are measured (PlanQuery::measures)
    averaged   // in steps after which replicas average their weights (Plan::average_every)
  };
  // peers: the workers with the same stages; rank: those of the same process
  enum class Scope : uint8_t { all, peers, rank };

  PlanOp op = PlanOp::run;
  Actor actor = Actor::shards;
  When when = When::always;
  Quantity quantity = Quantity::none;
  Part part = Part::forward;  // of run; of the operation of send, receive, wait
  Scope scope = Scope::all;
  // Of pipelines: the operation {stage, chunk, part}. chunk -1: the current micro-batch.
  int stage = 0, chunk = -1;
  int device = -1;  // index in the replica: the other side, or the only device that executes it
  int until = -1;   // bucket
  int bucket = -1;
  bool operator==(const PlanStep&) const = default;

  StageOp stage_op() const {
    return {.stage = stage, .chunk = chunk, .backward = part == Part::backward};
  }
};

// "forward", "sum_loss", "all_reduce gradients": the step's name in traces and texts.
std::string name_of(const PlanStep& step);

struct Plan {
  using Steps = std::vector<PlanStep>;
  std::string mode = "single";
  Steps begin;     // of the hosts of several GPUs, before each step: they stay ahead of their GPUs
  Steps launch;    // the same on several machines, before each launch of one or more steps
  Steps prologue;  // once per step: those of `shards` and of `gpus` with `load_targets`, `run` over
                   // all micro-batches
  Steps micro;     // for each micro-batch; empty if there are stages
  std::vector<Steps> stages;  // [devices of a replica] instead of `micro`: all micro-batches
  Steps update;               // once per step
  int forward_sync_points = 0,
      backward_sync_points = 0;       // sync points, program.h, Note [sync points]
  bool sync_across_replicas = false;  // sync points sum over all replicas, not only over their own
  bool accumulates = false;           // a step may have several micro-batches
  // When::averaged: after every so many steps of the run, and after the last step of an epoch or
  // of the run. 0: no step is.
  int64_t average_every = 0;
  PipelineSchedule schedule;  // covers all micro-batches; empty: one stage
  // [devices of a replica] the buckets of the gradients of its GPU; empty on CPUs.
  std::vector<std::vector<Bucket>> buckets;

  int sync_points() const { return forward_sync_points + backward_sync_points; }
  int sync_points(const PlanStep& step) const;
  int sync_points(Part part) const;
  // Barriers of a step that is not measured, without those at sync points.
  int barriers(int64_t micro_batches) const;
  // The activations of a shard group must outlive a run of steps. A worker with several groups
  // divides the backward part of its last one only.
  bool splits_shards() const;
  std::string str() const;
};

// Consecutive steps with the same actor, from a list: what one worker does before the next actor's
// turn. Calls f(span of steps).
template <class F>
void each_run(const Plan::Steps& steps, F f) {
  for (size_t begin = 0, end = 0; begin < steps.size(); begin = end) {
    const auto same = [&](const PlanStep& a, const PlanStep& b) {
      return a.actor == b.actor && a.scope == b.scope &&
             (a.op == PlanOp::barrier) == (b.op == PlanOp::barrier);
    };
    for (end = begin + 1; end < steps.size() && same(steps[begin], steps[end]);) ++end;
    f(std::span(steps).subspan(begin, end - begin));
  }
}

// What basic_plan() must know. It returns the plan of `single` on one worker, which has no
// communication; parallel modes rewrite it.
struct PlanQuery {
  bool gpus = false;
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

}  // namespace dpt
