// Which samples each shard computes in each step of an epoch. Every row of the epoch's order occurs
// exactly once, unless drop_last leaves it out.
#pragma once

#include <cstdint>
#include <vector>

#include "data/sampler.h"
#include "graph/program/program.h"
#include "parallel/topology.h"

namespace dpt {

// A shard's part of one micro-batch. Rows are positions in the epoch's order: that of the shard's
// replica with per-replica sampling, else the common order.
struct ShardRows {
  Rows rows;
  int64_t first_sample = 0;  // index of its first row in the batch of all replicas
};

struct StepRows {
  int64_t samples = 0;                        // in the batch of all ranks
  std::vector<std::vector<ShardRows>> micro;  // [micro-batch][shard]
};

// The rows of a shard group in a micro-batch.
ShardGroupRows shard_group_rows(const std::vector<ShardRows>& micro, Rows group);

class BatchPartitioner {
 public:
  // batches.deal.ranks: who.replicas() with per-replica sampling, else 1. accumulate: number of
  // micro-batches per batch.
  BatchPartitioner(const Batches& batches, const Topology& topology, int64_t accumulate);

  int64_t steps() const { return batches_.steps(); }  // per epoch
  int64_t accumulate() const { return accumulate_; }
  bool per_replica_sampling() const { return batches_.assignment.ranks > 1; }
  const SampleAssignment& assignment() const { return batches_.assignment; }
  // Computes the rows of a step. Does not allocate if the batch is full and `out` was filled
  // before. REQUIRES: 0 <= step < steps().
  void step(int64_t step, StepRows& out) const;
  // All different rows of these shard groups over all steps, in ascending order, without empty
  // groups.
  std::vector<ShardGroupRows> shard_group_rows(const std::vector<Rows>& groups) const;

 private:
  void partition_step(int64_t step, StepRows& out) const;

  Batches batches_;
  Topology topology_;
  int64_t accumulate_;
  StepRows full_;  // step 0; other full batches only differ in the offset
};

}  // namespace dpt
