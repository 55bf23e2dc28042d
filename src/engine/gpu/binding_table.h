// All bindings of one GPU: programs bound to its memory, and which one a micro-batch uses. A GPU
// computes its whole batch as one shard.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "engine/gpu/binding.h"
#include "engine/gpu/stages.h"
#include "engine/gpu/update.h"
#include "engine/gpu/worker.h"
#include "engine/program_kind.h"

namespace dpt {

// Thread: the worker's. REQUIRES: all references outlive it.
class GpuBindingTable {
 public:
  // Prepares all kernels and allocates activations and the libraries' workspace. stages: null: this
  // GPU has all stages.
  GpuBindingTable(GpuWorker& worker, const GpuUpdate& update, GpuStages* stages);

  // The binding for this GPU's rows of `micro`. chunk: the number of the micro-batch, whose
  // activations have memory of their own if several are in flight. Throws Error{failed} if no
  // program has this number of rows; find() returns null if there are none.
  GpuBinding& at(const MicroBatch& micro, ProgramKind kind, size_t chunk = 0) const;
  GpuBinding* find(const MicroBatch& micro, ProgramKind kind, size_t chunk = 0) const {
    return worker_.row_count(micro) == 0 ? nullptr : &at(micro, kind, chunk);
  }
  // The binding of micro-batch number `micro` of a training step; null: it has no rows here.
  GpuBinding* of_step(const StepRows& rows, size_t micro) const {
    return find(rows.micro[micro], program_kind(worker_.session, micro), micro);
  }

  GpuBinding::BufferPointers memory(ProgramKind kind, size_t chunk) const;
  // Bytes of activations, if this GPU has all stages.
  static size_t activation_bytes(const CompiledModel& model);

 private:
  void plan_kernels();
  void bind(ProgramKind kind);

  GpuWorker& worker_;
  const GpuUpdate& update_;
  GpuStages* stages_;
  size_t slot_count_;
  cuda::DeviceBuffer workspace_, activations_, sums_;
  std::vector<std::unique_ptr<GpuBinding>> bindings_[kProgramKinds];  // slot by slot
};

}  // namespace dpt
