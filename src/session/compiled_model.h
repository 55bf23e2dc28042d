// CompiledModel: the model of a session as programs, one for every size of a shard group, and where
// its parameters lie.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "graph/program/program.h"
#include "layers/loss.h"
#include "parallel/topology.h"

namespace dpt {

struct CompiledModel {
  Graph graph;                     // for a shard of the usual size: for names, counts and plans
  std::vector<Rows> shard_groups;  // each computed as one batch: program.h, note [shard groups]
  FlatLayout layout;
  std::map<ShardGroupRows, Program> programs, test_programs;
  std::map<ShardGroupRows, Program> last_programs;  // for a last chunk that keeps its activations
  int test_sync_points =
      0;  // sync points in the forward part of an evaluation (program.h, Note [sync points])

  std::vector<int> placement;  // device of each unit in a pipeline, see layers/model.h
  std::vector<int> slots;      // for each stage: chunks that it may have in flight
  int slot_count = 1;          // number of chunks after which all slots repeat

  // What the loss is divided by, see layers/model.h.
  Divisor divisor = Divisor::samples;
  bool takes_empty_steps = false;  // StepResult::empty is possible
  int64_t terms_per_sample = 1;

  int64_t parameters() const;  // trainable elements
  // The latest earlier batch in the same slot of the stage; -1: none.
  int64_t same_slot_before(int stage, int64_t batch) const;
  // In an evaluation: how many parts the stage's device has finished once it is done with this
  // batch.
  int64_t test_parts_until(int stage, int64_t batch) const;
};

}  // namespace dpt
