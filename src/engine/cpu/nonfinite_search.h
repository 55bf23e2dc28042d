// The search of the non-finite check on CPUs: one worker's part.
#pragma once

#include "engine/cpu/batch_input.h"
#include "engine/cpu/binding_table.h"
#include "engine/cpu/sync_points.h"
#include "engine/cpu/worker.h"
#include "engine/nonfinite_search.h"

namespace dpt {

class CpuNonFiniteSearch final : public NonFiniteSearch {
 public:
  // REQUIRES: all references outlive it.
  CpuNonFiniteSearch(CpuWorker& worker, const BindingTable& bindings, SyncPoints& sync_points,
                     CpuBatchInput& input);

 private:
  void load(const StepInput& input, size_t micro) override;
  void run_stage(const StepInput& input, size_t micro, int stage) override;
  void pass_on(const StepInput& input, size_t micro, int stage) override;
  void barrier() override { worker_.team.barrier(worker_.team_number); }
  void gather() override;

  CpuWorker& worker_;
  const BindingTable& bindings_;
  SyncPoints& sync_points_;
  CpuBatchInput& input_;
};

}  // namespace dpt
