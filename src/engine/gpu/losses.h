// The loss and its divisor in a step on one GPU, up to the decision whether the gradients are used.
#pragma once

#include <cstddef>

#include "engine/gpu/binding_table.h"
#include "engine/gpu/exchange.h"
#include "engine/gpu/gather.h"
#include "engine/gpu/launch_queue.h"
#include "engine/gpu/update.h"
#include "engine/gpu/worker.h"

namespace dpt {

// Each call enqueues. Thread: the worker's. REQUIRES: all references outlive it.
class GpuLosses {
 public:
  // exchange: null: the run has one replica. gather: null: each GPU computes the loss of its own
  // rows.
  GpuLosses(const GpuWorker& worker, const GpuBindingTable& bindings, GpuUpdate& update,
            const LaunchQueue& launch_queue, GpuExchange* exchange, GpuGather* gather);

  // The part of the divisor that this GPU's targets determine. REQUIRES: they are loaded.
  void run_prologue(const StepRows& rows, size_t micro);
  // Sums these parts over micro-batches, when they are summed over GPUs.
  void sum_divisor(const StepRows& rows);
  // Runs the loss of a micro-batch and keeps it for the decision. b: null: no rows. Returns where
  // the step's only loss stays; null: it was kept elsewhere.
  const std::byte* run(const StepRows& rows, size_t micro, GpuBinding* b);
  // Decides for step `step` of the launch. only_loss: what run() returned.
  void decide(size_t step, const std::byte* only_loss);

  // The values of Quantity::loss or ::divisor, which the exchange sums over GPUs; else nothing.
  GpuExchange::Terms terms_of(Quantity what) const;

 private:
  void run_all(const StepRows& rows, size_t micro, GpuBinding* b);
  void report_rank0(size_t step);

  const GpuWorker& worker_;
  const GpuBindingTable& bindings_;
  GpuUpdate& update_;
  const LaunchQueue& launch_queue_;
  GpuExchange* exchange_;
  GpuGather* gather_;
  size_t micro_batches_;
  cuda::DeviceBuffer target_weights_;  // [2 * micro-batches] this GPU's, then those of rank 0
};

}  // namespace dpt
