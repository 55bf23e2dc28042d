// Which samples each shard takes in each step of an epoch: every sample once, however uneven.
#pragma once

#include <cstdint>
#include <vector>

#include "data/sampler.h"
#include "graph/program/program.h"
#include "parallel/topology.h"

namespace dpt {

// A shard's part of one micro-batch. Rows count from the start of the epoch's order: its replica's
// own where samples are dealt to replicas, else the common one.
struct ShardRows {
  Rows rows;
  int64_t first_sample = 0;  // its first row's place in the batch of all replicas
};

struct StepRows {
  int64_t samples = 0;                        // of all ranks, in the whole batch
  std::vector<std::vector<ShardRows>> micro;  // [micro-batch][shard]
};

// What a group of shards has of a micro-batch.
GroupRows group_rows(const std::vector<ShardRows>& micro, Rows group);

class StepCutter {
 public:
  // batches.deal.ranks: who.replicas() where samples are dealt to them, else 1. accumulate:
  // micro-batches that a batch is computed in.
  StepCutter(const Batches& batches, const Topology& who, int64_t accumulate);

  int64_t steps() const { return batches_.steps(); }  // of an epoch
  int64_t accumulate() const { return accumulate_; }
  bool dealt() const { return batches_.deal.ranks > 1; }
  const Deal& deal() const { return batches_.deal; }
  // Fills `out`; for a full batch allocates nothing when it was filled before. REQUIRES: 0 <= step
  // < steps().
  void step(int64_t step, StepRows& out) const;
  // What each of these groups of shards has, in all steps, ascending; without those that have no
  // rows.
  std::vector<GroupRows> group_rows(const std::vector<Rows>& groups) const;

 private:
  void cut_step(int64_t step, StepRows& out) const;

  Batches batches_;
  Topology who_;
  int64_t accumulate_;
  StepRows full_;  // step 0, which all steps with full batches are like
};

}  // namespace dpt
