// All bindings of one CPU worker: programs bound to the memory of its shard groups, and which one a
// shard group uses in a micro-batch.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/cpu/binding.h"
#include "engine/cpu/worker.h"
#include "engine/program_kind.h"
#include "engine/shard_samples.h"
#include "session/arenas.h"

namespace dpt {

// Thread: the worker's. REQUIRES: the worker outlives it.
class BindingTable {
 public:
  // Prepares all kernels.
  explicit BindingTable(const CpuWorker& worker);

  // The binding for the rows that the group has in `micro`; null: it has none. chunk: the number of
  // the micro-batch, whose activations have memory of their own if several are in flight. Throws
  // Error{failed} if no program has this number of rows. Does not allocate.
  Binding* find(int group, const MicroBatch& micro, ProgramKind kind, size_t chunk = 0) const;

  size_t slot_count() const { return slot_count_; }  // CompiledModel::slot_count
  const Arenas& arenas() const { return arenas_; }

 private:
  using ByRows = std::vector<std::unique_ptr<Binding>>;  // one per row count: two or three
  size_t index(int group, ProgramKind kind, size_t slot) const {
    return (static_cast<size_t>(group) * kProgramKinds + static_cast<size_t>(kind)) * slot_count_ +
           slot;
  }
  std::vector<Part> parts(int group, ProgramKind kind) const;
  void bind(int group, ProgramKind kind, size_t slot);

  const CpuWorker& worker_;
  Arenas arenas_;
  size_t slot_count_;
  std::vector<std::byte> later_;  // scratch for the gradients of later micro-batches
  std::vector<ByRows> bindings_;  // [index()]
};

}  // namespace dpt
