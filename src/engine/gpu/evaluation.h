// The evaluation on one GPU: several batches per launch, whose sums stay on the GPU until the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/gpu/batch_input.h"
#include "engine/gpu/binding_table.h"
#include "engine/gpu/captured_graphs.h"
#include "engine/gpu/output_metrics.h"
#include "engine/gpu/stages.h"
#include "engine/gpu/worker.h"
#include "engine/prefetch_stream.h"
#include "engine/step_executor.h"

namespace dpt {

// Thread: the worker's. REQUIRES: session.data.test; all references outlive it.
class GpuEvaluation {
 public:
  // batch_input: of the evaluated set; null: this GPU reads none. stages: null: this GPU has all
  // stages. prefetch: the rank's prefetched inputs; null: none. wait_for: waits for an event of
  // this GPU. The constructor waits for the GPU.
  GpuEvaluation(GpuWorker& worker, const GpuBindingTable& bindings, CapturedGraphs& graphs,
                BatchInput* batch_input, GpuStages* stages, PrefetchStream* prefetch,
                const WaitForGpu& wait_for);

  // As StepExecutor::evaluate(). REQUIRES: this GPU has the running statistics to evaluate with.
  Evaluation run(const StepExecutor::BatchesDone& done);

 private:
  void upload_entries();
  int64_t launch_all(std::span<const uint32_t> order, const StepExecutor::BatchesDone& done);
  int64_t run_in_stages(std::span<const uint32_t> order, const StepExecutor::BatchesDone& done);
  void run_batch_in_stages(const StepInput& input);
  void launch(const StepInput& first, size_t batches);
  void enqueue(const StepRows& rows, size_t slot);
  cuda::CapturedGraph& graph(const StepRows& rows, size_t slot, size_t batches);
  StepShape shape_of_batch(const StepRows& rows) const;
  bool warm(const StepRows& rows) const;
  void keep_results(const GpuBinding& b);
  void download_sums(int64_t samples);
  struct Results {
    cuda::TestSums sums;
    cuda::StepState state;
  };
  const cuda::StepEntry* entry(int64_t batch) const {
    return reinterpret_cast<const cuda::StepEntry*>(entries_.data()) + batch;
  }
  cuda::TestSums* sums() const { return reinterpret_cast<cuda::TestSums*>(sums_.data()); }

  GpuWorker& worker_;
  const GpuBindingTable& bindings_;
  CapturedGraphs& graphs_;
  BatchInput* batch_input_;
  GpuStages* stages_;
  PrefetchStream* prefetch_;
  cuda::DeviceBuffer entries_;       // [batches of the set] their entries, uploaded once
  cuda::DeviceBuffer entry_, sums_;  // entry of the current batch; sums over past batches
  cuda::DeviceBuffer results_;       // pinned: Results
  GpuOutputMetrics metrics_;
};

}  // namespace dpt
