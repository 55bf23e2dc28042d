// The evaluation on one CPU worker: it computes the forward passes and the loss of its own shards,
// whatever device computes the loss in training.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/cpu/batch_input.h"
#include "engine/cpu/binding_table.h"
#include "engine/cpu/stage_posts.h"
#include "engine/cpu/sync_points.h"
#include "engine/cpu/worker.h"
#include "engine/step_executor.h"

namespace dpt {

// Thread: the worker's. REQUIRES: session.data.test; all references outlive it.
class CpuEvaluation {
 public:
  // prefetch: the rank's prefetched inputs of the evaluated set; null: the worker reads them.
  CpuEvaluation(CpuWorker& worker, const BindingTable& bindings, SyncPoints& sync_points,
                StagePosts& posts, PrefetchStream* prefetch)
      : worker_(worker),
        bindings_(bindings),
        sync_points_(sync_points),
        posts_(posts),
        prefetch_(prefetch),
        input_(worker, *worker.session.data.test_loader, prefetch) {}

  // As StepExecutor::evaluate().
  Evaluation run(const StepExecutor::BatchesDone& done);

 private:
  void begin(int group, const StepInput& input, size_t slot = 0);
  void end(int group, const MicroBatch& micro, size_t slot = 0) const;
  void run_batch(const StepInput& input);
  void run_batch_with_sync_points(const StepInput& input);
  void run_batch_in_stages(const StepInput& input);

  CpuWorker& worker_;
  const BindingTable& bindings_;
  SyncPoints& sync_points_;
  StagePosts& posts_;
  PrefetchStream* prefetch_;
  CpuBatchInput input_;
};

}  // namespace dpt
