// The distribution of work: hosts, ranks (processes), devices per rank, workers (cores) per device,
// and the shards of the global batch. A replica of the model is on one device, or on several
// consecutive ones (graph/graph.h, Note [stages]); worker w of each of its devices has the same
// shards.
//
// Note [same bits]: gradients are summed over shards in one fixed tree (comm/tree.h). The bits of a
// run depend only on which samples are in which shard. Shards are numbered 0..shards-1 over all
// ranks, and so are workers.
#pragma once

#include <cstdint>
#include <vector>

namespace dpt {

// Samples [begin, end) of a batch.
struct Rows {
  int64_t begin = 0, end = 0;
  int64_t count() const { return end - begin; }
  bool operator==(const Rows&) const = default;
};

struct Topology {
  int ranks = 1;
  int devices_per_rank = 1;
  int workers_per_device = 1;
  int devices_per_replica = 1;  // divides ranks * devices_per_rank
  int shards = 1;               // of the global batch
  // The global batch is split evenly into shards, whoever owns them, and every mode uses the same
  // order of samples. Otherwise devices and workers get the chunks of torch.chunk.
  bool reproducible = false;
  // Per-replica sampling: each replica has its own order of samples, as by DistributedSampler.
  // Otherwise all share one order.
  bool per_replica_sampling = false;
  int loss_device = -1;  // dp: the device that computes the loss; -1: each shard's owner does
  // Steps after which replicas average their weights and optimizer states, each replica training
  // its own in between; 0: all replicas train the same weights.
  int64_t average_every = 0;
  // The first rank of each host (machine), ascending from 0: the ranks of a host are consecutive,
  // and hosts may have different numbers of them. Empty: all ranks are on one host.
  std::vector<int> first_ranks{};
  int host = 0;  // on which this process is

  int hosts() const { return first_ranks.empty() ? 1 : static_cast<int>(first_ranks.size()); }
  // The ranks, the workers and the shards of a host, as numbered over all hosts. A host that has
  // more workers than there are shards per worker may have no shards.
  Rows ranks_of_host(int h) const;
  Rows workers_of_host(int h) const;
  Rows shards_of_host(int h) const;
  int host_of_shard(int shard) const;

  int total_workers() const { return ranks * devices_per_rank * workers_per_device; }
  int workers_per_rank() const { return devices_per_rank * workers_per_device; }
  int rank_of(int worker) const { return worker / workers_per_rank(); }
  int replicas() const { return ranks * devices_per_rank / devices_per_replica; }
  int device_of(int worker) const {
    return worker / workers_per_device % devices_per_replica;
  }  // within its replica
  int replica(int worker) const { return worker / workers_per_device / devices_per_replica; }
  bool replicas_own_weights() const { return average_every > 0 && replicas() > 1; }
  // The workers and the shards that train the same weights as this worker: all, or those of its
  // replica.
  Rows workers_with(int worker) const;
  Rows shards_with(int worker) const;
  // The worker that computes the shard on device `device` of its replica.
  int owner(int shard, int device = 0) const;
  int loss_owner(int shard) const;  // the worker that computes the shard's loss
  std::vector<int> shards_of(int worker) const;
  Rows shards_of_rank(int rank) const;  // shard numbers of the rank's replicas
  // Whether sums at sync points, over a replica or over all replicas, need a barrier because
  // several workers own the shards.
  bool sync_needs_barrier(bool all) const {
    return workers_per_device > 1 || (all && replicas() > 1);
  }
  // The shards over which batch norm sums for this shard: those of its replica, or all.
  Rows replica_of(int shard, bool all) const;
  // The shard groups: consecutive shards with the same owner and the same loss owner. alone: each
  // shard is its own group.
  std::vector<Rows> shard_groups(bool alone) const;
};

// torch.chunk: parts of ceil(n / parts) elements, the last one smaller; the remaining ones are
// empty. 5 in 4 parts gives 2, 2, 1, 0.
std::vector<Rows> chunk(int64_t n, int parts);
Rows chunk(int64_t n, int parts, int part);  // a single part

// The rows of each shard in one (micro-)batch, relative to the start of the batch from which it is
// split. batches: with per-replica sampling, the number of samples of each replica; otherwise one
// number, that of the common batch.
std::vector<Rows> rows_of_shards(const Topology& topology, const std::vector<int64_t>& batches);

}  // namespace dpt
