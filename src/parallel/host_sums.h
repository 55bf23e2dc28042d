// Gradient sums over the shards of several hosts, with the bits of one host: which subtrees of the
// fixed tree (comm/tree.h) a host sums by itself, in which order their owner adds them up, and
// which elements a host owns. Arithmetic on numbers only: nothing here is sent or summed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph/program/plan.h"
#include "parallel/topology.h"

namespace dpt {

// The largest subtrees of the tree over `shards` shards that lie in `own`, in ascending order. A
// subtree is the shards that it sums: [0, 4), [4, 6), [6, 7). An aligned power of two, or all
// shards, is one subtree.
std::vector<Rows> subtrees(Rows own, int shards);

// What hosts send of their gradients.
struct GradientPart {
  Rows shards;          // a subtree
  int host = 0;         // that has these shards
  bool halves = false;  // with `compress`: a single shard, as 16-bit numbers; else the sum in f32
  size_t element_bytes() const { return halves ? 2 : 4; }
  bool operator==(const GradientPart&) const = default;
};
// The parts of all hosts in ascending order of shards; every shard is in one part. compress: a host
// sends the halves of each of its shards if these are fewer bytes than its subtrees in f32.
std::vector<GradientPart> gradient_parts(const Topology& topology, bool compress);

// An addition of the tree: parts[into] += parts[from], with indices in a list of parts.
struct PartSum {
  int into = 0, from = 0;
  bool operator==(const PartSum&) const = default;
};
// The additions that complete the tree over all shards from the sums of these parts, in order. The
// result is in parts[0]. With one part there are none.
std::vector<PartSum> completing_sums(const std::vector<GradientPart>& parts, int shards);

// Which host sums, updates and sends which elements of the flat buffers. Elements are divided into
// buckets, and each bucket into one piece for each host, in the order of hosts.
class ElementOwners {
 public:
  static constexpr size_t kPiece = size_t{1} << 20;  // most elements of a piece: 4 MiB

  // Pieces begin at multiples of `multiple`. REQUIRES: elements, hosts, multiple > 0.
  ElementOwners(size_t elements, int hosts, size_t multiple, size_t piece = kPiece);

  int hosts() const { return hosts_; }
  size_t multiple() const { return multiple_; }
  size_t buckets() const { return (elements_ + bucket_ - 1) / bucket_; }
  Bucket bucket(size_t b) const;
  Bucket piece(size_t b, int host) const;  // of a small bucket it may be empty

 private:
  size_t elements_, multiple_, bucket_;
  int hosts_;
};

// Part number `i` of `count` about equal parts of a bucket; all but the last one have multiples of
// `multiple` elements.
Bucket part_of(const Bucket& bucket, int64_t i, int64_t count, size_t multiple);

// What a host sends and receives in one exchange with all others.
struct HostTraffic {
  uint64_t sent = 0, received = 0;  // bytes
  uint64_t messages = 0;            // sent or received, whichever are more
  bool operator==(const HostTraffic&) const = default;
};
// What a bucket needs: gradient_traffic() counts the parts of its gradients, which go to the owner
// of their elements, weight_traffic() its weights, which go from each owner to all others.
HostTraffic gradient_traffic(const std::vector<GradientPart>& parts, const ElementOwners& owners,
                             size_t bucket, int host);
HostTraffic weight_traffic(const ElementOwners& owners, size_t bucket, int host);

// Bytes that a host sends in a step, besides a few for each shard: of its gradients, and of the
// weights that it has updated. It receives the sum of what others send to it.
struct ExchangeBytes {
  uint64_t gradients = 0, weights = 0;
};
ExchangeBytes exchange_bytes(const std::vector<GradientPart>& parts, const ElementOwners& owners,
                             int host);

}  // namespace dpt
