// The search of the non-finite check: its order, and how the workers agree on what they found.
// Devices differ in how they run a stage (engine/cpu/nonfinite_search.h,
// engine/gpu/nonfinite_search.h).
//
// The order is that in which a value may have become non-finite first: samples and parameters, then
// for each micro-batch the forward pass, stage by stage.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "engine/nonfinite_check.h"
#include "engine/shard_samples.h"
#include "engine/stages_of_device.h"
#include "engine/step_executor.h"
#include "session/buffers.h"
#include "session/session.h"

namespace dpt {

// Thread: the worker's. All workers of a run search together.
class NonFiniteSearch {
 public:
  // own: the shards that this worker computes, adjacent ones together; what is found is recorded at
  // the first of each (Buffers::non_finite). REQUIRES: all references outlive it.
  NonFiniteSearch(const Session& session, const Buffers& buffers, const StagesOfDevice& stages,
                  std::vector<Rows> own)
      : session_(session), buffers_(buffers), stages_(stages), own_(std::move(own)) {}
  virtual ~NonFiniteSearch() = default;
  NonFiniteSearch(const NonFiniteSearch&) = delete;
  NonFiniteSearch& operator=(const NonFiniteSearch&) = delete;

  // Repeats the forward pass of `input`; the report is the same on every worker. REQUIRES: the
  // weights in the buffers are those before the step.
  NonFiniteReport run(const StepInput& input);

 protected:
  // Loads what the worker's stages read of a micro-batch.
  virtual void load(const StepInput& input, size_t micro) = 0;
  // Runs the forward pass of one of the worker's stages and records each shard group's first
  // instruction with a non-finite result by record().
  virtual void run_stage(const StepInput& input, size_t micro, int stage) = 0;
  // On all workers, after each stage: returns when the next stage may read its results.
  virtual void pass_on(const StepInput& input, size_t micro, int stage) = 0;
  virtual void barrier() = 0;
  // With several hosts, on all workers: brings what each shard found to all hosts.
  virtual void gather() {}

  // Instruction `instruction` of the forward part made a non-finite value; only the first counts.
  void record(int64_t shard, size_t micro, int64_t instruction) const;

  const Session& session_;
  const Buffers buffers_;
  const StagesOfDevice stages_;
  const std::vector<Rows> own_;

 private:
  void check_stored(const StepInput& input) const;
};

}  // namespace dpt
