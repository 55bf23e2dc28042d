// The search of the non-finite check on one GPU.
#pragma once

#include "engine/gpu/batch_input.h"
#include "engine/gpu/binding_table.h"
#include "engine/gpu/stages.h"
#include "engine/gpu/worker.h"
#include "engine/nonfinite_search.h"

namespace dpt {

// For one search. REQUIRES: all references outlive it; nothing is in progress on the GPU.
class GpuNonFiniteSearch final : public NonFiniteSearch {
 public:
  // batch_input: null: this GPU reads none. stages: null: this GPU has all stages.
  GpuNonFiniteSearch(GpuWorker& worker, const GpuBindingTable& bindings, BatchInput* batch_input,
                     GpuStages* stages, const StepInput& input);

 private:
  void load(const StepInput& input, size_t micro) override;
  void run_stage(const StepInput& input, size_t micro, int stage) override;
  void pass_on(const StepInput& input, size_t micro, int stage) override;
  void barrier() override { worker_.gpus.barrier(); }
  void gather() override {
    worker_.among_hosts([](GpuHostExchange& e) { e.results().gather_non_finite(); });
  }
  GpuBinding* binding(const StepInput& input, size_t micro) const {
    return bindings_.find(input.rows->micro[micro], ProgramKind::train);
  }
  bool finite(const TensorView& v);

  GpuWorker& worker_;
  const GpuBindingTable& bindings_;
  BatchInput* batch_input_;
  GpuStages* gpu_stages_;
  cuda::DeviceBuffer entry_;
  size_t slot_ = 0;
};

}  // namespace dpt
