// Training steps of models whose stages lie on several devices. Each worker executes the plan's
// list for its device: forward and backward passes of its stages, each as soon as the neighboring
// stage is done with the chunk.
#pragma once

#include "engine/cpu/batch_input.h"
#include "engine/cpu/binding_table.h"
#include "engine/cpu/shard_gradients.h"
#include "engine/cpu/shard_losses.h"
#include "engine/cpu/stage_posts.h"
#include "engine/cpu/sync_points.h"
#include "engine/cpu/worker.h"
#include "engine/step_executor.h"

namespace dpt {

// Thread: the worker's. REQUIRES: all references outlive it.
class CpuPipeline {
 public:
  CpuPipeline(CpuWorker& worker, const BindingTable& bindings, SyncPoints& sync_points,
              CpuBatchInput& input, const ShardLosses& losses, const ShardGradients& gradients,
              StagePosts& posts)
      : worker_(worker),
        bindings_(bindings),
        sync_points_(sync_points),
        input_(input),
        losses_(losses),
        gradients_(gradients),
        posts_(posts) {}

  // All micro-batches of a step. REQUIRES: the plan has stages.
  void run(const StepInput& input);

 private:
  void do_step(const PlanStep& s, const StepInput& input);
  void load(const PlanStep& s, const StepInput& input);
  void run_stage(const PlanStep& s, const StepInput& input);

  CpuWorker& worker_;
  const BindingTable& bindings_;
  SyncPoints& sync_points_;
  CpuBatchInput& input_;
  const ShardLosses& losses_;
  const ShardGradients& gradients_;
  StagePosts& posts_;
};

}  // namespace dpt
