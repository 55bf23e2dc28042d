// Runs parts of a program on one GPU, with the sums over replicas of sync_batch_norm.
#pragma once

#include <cstddef>

#include "engine/gpu/binding.h"
#include "engine/gpu/exchange.h"
#include "engine/gpu/worker.h"
#include "engine/program_kind.h"

namespace dpt {

// Each call enqueues. Thread: the worker's. REQUIRES: all references outlive it.
class GpuParts {
 public:
  // exchange: null: the run has one replica.
  GpuParts(const GpuWorker& worker, GpuExchange* exchange) : worker_(worker), exchange_(exchange) {}

  // b: null: this GPU has no rows of the micro-batch and only takes part in the sums. Runs
  // instructions [begin, end) of a part of a model with one stage.
  void run(Part part, GpuBinding* b, size_t begin, size_t end);
  // Runs what a stage has of a part. kind: of the micro-batch's program.
  void run_stage(Part part, int stage, GpuBinding* b, ProgramKind kind);

  // The program of a binding. Without rows any one of the kind will do: the order of the sums is
  // the same in all.
  const Program& program_of(const GpuBinding* b, ProgramKind kind = ProgramKind::train) const {
    return b ? b->program() : programs_of(worker_.session, kind).begin()->second;
  }

 private:
  bool syncs() const { return exchange_ && worker_.session.settings.spec.sync_batch_norm; }
  void sum_result(const Program& program, const Instruction& i, const GpuBinding* b);

  const GpuWorker& worker_;
  GpuExchange* exchange_;
};

}  // namespace dpt
