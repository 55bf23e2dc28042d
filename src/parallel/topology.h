// Who does what: ranks (processes), devices in each, workers (cores) of each device, and the shards
// that the global batch is cut into. A replica of the model lies on one device, or on several that
// follow each other (graph/graph.h, note [stages]); worker w of each of them has the same shards.
//
// Note [same bits]: gradients are summed over shards in one fixed tree (comm/tree.h), so the bits
// of a run depend on which samples stand in which shard, and on nothing else. A plan's shards are
// numbered 0..shards-1 over all ranks; workers are numbered over all ranks, too.
#pragma once

#include <cstdint>
#include <vector>

namespace dpt {

// Samples begin..end of a batch.
struct Rows {
  int64_t begin = 0, end = 0;
  int64_t count() const { return end - begin; }
  bool operator==(const Rows&) const = default;
};

struct Topology {
  int ranks = 1;
  int devices = 1;  // of each rank
  int workers = 1;  // of each device
  int span = 1;     // devices that a replica lies on; ranks * devices is a multiple
  int shards = 1;   // of the global batch
  // Shards are cut from the global batch evenly, whoever owns them, and every mode takes the
  // samples in the same order. Else each device and worker takes torch's chunks.
  bool reproducible = false;
  // Each replica has an order of its own, as DistributedSampler gives it; else all share one.
  bool dealt = false;
  int loss_device = -1;  // dp with the loss on one device: its number; -1: every owner's own

  int total_workers() const { return ranks * devices * workers; }
  int workers_per_rank() const { return devices * workers; }
  int rank_of(int worker) const { return worker / workers_per_rank(); }
  int replicas() const { return ranks * devices / span; }
  int device_of(int worker) const { return worker / workers % span; }  // in its replica
  int replica(int worker) const { return worker / workers / span; }
  // The worker that computes it, on the first device of its replica or on that one.
  int owner(int shard, int device = 0) const;
  int loss_owner(int shard) const;  // the worker that computes its loss
  std::vector<int> shards_of(int worker) const;
  Rows shards_of_rank(int rank) const;  // a range of shard numbers, those of its replicas
  // The shards of one replica, or of all, belong to several workers, which meet to sum over them.
  bool replicas_meet(bool all) const { return workers > 1 || (all && replicas() > 1); }
  // The shards that batch normalisation sums over for this one: of the same device, or all.
  Rows replica_of(int shard, bool all) const;
  // Consecutive shards that have the same owner and the same owner of their loss; or, where each is
  // `alone`, as many groups as shards.
  std::vector<Rows> groups(bool alone) const;
};

// torch.chunk: pieces of ceil(n / parts), the last is the rest, and there may be fewer: 5 in 4
// gives 2, 2, 1, 0.
std::vector<Rows> chunk(int64_t n, int parts);
Rows chunk(int64_t n, int parts, int part);  // one of them

// The rows of every shard in one (micro-)batch, counted from the start of the batch that it is cut
// from. batches: how many samples each replica has in it, where samples are dealt to them; else one
// number, of the common batch.
std::vector<Rows> cut(const Topology& who, const std::vector<int64_t>& batches);

}  // namespace dpt
