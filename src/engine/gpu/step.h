// Executes the plan's lists for one training step, by enqueuing or capturing what each instruction
// says. If each GPU of a pipeline belongs to a process, steps are captured like others: NCCL's
// calls order the GPUs. If GPUs belong to threads they are not captured, since a graph would have
// to wait for an event in the middle of another GPU's graph.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "engine/gpu/batch_input.h"
#include "engine/gpu/binding_table.h"
#include "engine/gpu/exchange.h"
#include "engine/gpu/gather.h"
#include "engine/gpu/launch_queue.h"
#include "engine/gpu/losses.h"
#include "engine/gpu/parts.h"
#include "engine/gpu/stages.h"
#include "engine/gpu/update.h"
#include "engine/gpu/worker.h"
#include "graph/program/plan.h"

namespace dpt {

// Thread: the worker's. REQUIRES: all references outlive it.
class GpuStep {
 public:
  // What a step uses. Null: exchange: the run has one
  // replica; gather: each GPU computes the loss of its own rows; stages: this GPU has all stages.
  struct Uses {
    const GpuBindingTable& bindings;
    GpuUpdate& update;
    const LaunchQueue& launch_queue;
    GpuExchange* exchange;
    GpuGather* gather;
    GpuStages* stages;
  };
  GpuStep(GpuWorker& worker, const Uses& uses);
  // Call it before the first step. Null: this GPU reads no samples.
  void set_input(BatchInput* batch_input) { batch_input_ = batch_input; }

  // Enqueues a step. step: its index in the launch. slot: of the batch's input.
  void enqueue(const StepRows& rows, size_t step, size_t slot);
  // What all workers ask, after the step (LaunchDecisions); null: launches have no decisions.
  const double* decisions() const { return losses_.terms_of(Quantity::loss).of_first(); }
  // Enqueues what follows the update on all GPUs: replicas that updated pieces gather the others'
  // weights.
  void share_weights();

 private:
  struct InProgress {
    const StepRows& rows;
    size_t step = 0, slot = 0;
    size_t micro = 0;                 // the current micro-batch
    size_t backward = 0;              // instructions of its backward part that are enqueued
    const std::byte* loss = nullptr;  // the step's only loss; null: all were kept
  };
  void execute(const PlanStep& s, InProgress& now);
  bool elsewhere(const PlanStep& s) const;
  GpuBinding* binding(const InProgress& now) const {
    return uses_.bindings.of_step(now.rows, now.micro);
  }
  void begin(const GpuBinding* b, const InProgress& now);
  void load(const PlanStep& s, const InProgress& now);
  void load_targets(const InProgress& now);
  void run(const PlanStep& s, InProgress& now);
  void run_stage(const PlanStep& s, const InProgress& now, GpuBinding* b);
  void run_backward(const PlanStep& s, InProgress& now, GpuBinding* b);
  template <class F>
  void each_stored(int stage, F f) const;
  void add_gradients(const PlanStep& s, const InProgress& now);
  void gather(const PlanStep& s, const InProgress& now);
  void sum(const PlanStep& s, const InProgress& now);
  void broadcast_decision(const InProgress& now);

  GpuWorker& worker_;
  const Uses uses_;
  BatchInput* batch_input_ = nullptr;
  GpuParts parts_;
  GpuLosses losses_;
  // For each program: the instruction of the backward part that completes a bucket.
  std::map<const Program*, std::vector<size_t>> made_after_;
};

}  // namespace dpt
