// Decodes the samples of coming batches ahead of the steps that need them (data/prefetch.h), and
// knows where each shard's samples are in a batch.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "comm/team.h"
#include "data/drawn_samples.h"
#include "data/prefetch.h"
#include "parallel/topology.h"
#include "session/batch_partitioner.h"

namespace dpt {

// One rank's passes over a data set that is read from files. One thread calls begin() while the
// rank's other workers wait at a barrier; take() and give_back() may be called by every worker.
class PrefetchStream {
 public:
  // Starts as many threads as the rank's share of the process's cores. Call this before workers are
  // bound to cores, since the threads inherit the set of cores.
  PrefetchStream(const Dataset& dataset, const BatchPartitioner& partitioner,
                 const Topology& topology, int rank);

  // Starts a pass. `order`: the samples in the order of this rank's pass. Batches before `first`
  // are skipped. partner: a sample that is made after each, for loaders that mix (BatchLoader);
  // empty: none.
  void begin(DrawnSamples order, int64_t first = 0,
             const std::function<uint32_t(DrawnSample)>& partner = {});
  // Waits for a batch. Returns the inputs of `shards`, consecutive shards of one worker, one sample
  // after another. Valid until give_back() with the same arguments. Throws TeamBroken, and errors
  // of the reading threads.
  const std::byte* take(int64_t batch, int micro, Rows shards, const Team& team);
  void give_back(int64_t batch, int micro, Rows shards);

 private:
  struct Part {
    // The first sample's index in the rank's batch, and the number of samples, with partners.
    size_t first = 0, count = 0;
  };
  Part& part(int64_t batch, int micro, int64_t shard);

  const BatchPartitioner& partitioner_;
  size_t shards_, sample_bytes_;
  std::vector<bool> own_;    // [shards] computed by this rank
  std::vector<Part> parts_;  // [batch, micro-batch, shard]
  Prefetch prefetch_;
};

// Holds what take() returned and gives it back when it is destroyed. Null `ahead`: does nothing,
// and bytes() is null.
class BatchLease {
 public:
  BatchLease(PrefetchStream* prefetch, int64_t batch, int micro, Rows shards, const Team& team)
      : prefetch_(prefetch), batch_(batch), micro_(micro), shards_(shards) {
    if (prefetch_ != nullptr) bytes_ = prefetch_->take(batch, micro, shards, team);
  }
  ~BatchLease() {
    if (prefetch_ != nullptr) prefetch_->give_back(batch_, micro_, shards_);
  }
  BatchLease(const BatchLease&) = delete;
  BatchLease& operator=(const BatchLease&) = delete;
  const std::byte* bytes() const { return bytes_; }

 private:
  PrefetchStream* prefetch_;
  int64_t batch_;
  int micro_;
  Rows shards_;
  const std::byte* bytes_ = nullptr;
};

}  // namespace dpt
