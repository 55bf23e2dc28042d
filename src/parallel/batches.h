// Which samples each shard takes in each step of an epoch: every sample once, however uneven.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel/topology.h"

namespace dpt {

struct BatchQuery {
  int64_t samples = 0;     // of the data set
  int64_t batch_size = 1;  // of all ranks and micro-batches together: what the optimizer sees
  int64_t accumulate = 1;  // micro-batches that a batch is computed in
  bool drop_last = false;
  bool pad = false;      // every rank as many samples as the first, as torch's DistributedSampler
  bool strided = false;  // ddp: rank r takes samples r, r + ranks, ... of the order
};

// A shard's part of one micro-batch. Rows count from the start of the epoch's order: its rank's own
// where `strided`, else the common one.
struct ShardRows {
  Rows rows;
  int64_t first_sample = 0;  // its first row's place in the micro-batch of all ranks
};

struct StepRows {
  int64_t samples = 0;                // of all ranks, in the whole batch
  std::vector<int64_t> rank_samples;  // of each rank
  std::vector<std::vector<ShardRows>> micro;  // [micro-batch][shard]
};

// REQUIRES: where `strided`, batch_size is a multiple of the number of ranks.
class Batches {
 public:
  Batches(const BatchQuery& query, const Topology& who);

  int64_t steps() const { return steps_; }  // of an epoch
  int64_t samples_of(int rank) const;       // length of the order that the rank reads
  // Fills `out`, whose memory is reused. REQUIRES: 0 <= step < steps().
  void step(int64_t step, StepRows& out) const;
  // All sizes of shards that occur, without 0, ascending.
  std::vector<int64_t> shard_sizes() const;

 private:
  int64_t rank_batch() const { return query_.batch_size / who_.ranks; }

  BatchQuery query_;
  Topology who_;
  int64_t steps_ = 0;
};

}  // namespace dpt
