#include "parallel/topology.h"

#include <doctest/doctest.h>

#include "base/error.h"

namespace dpt {
namespace {

std::vector<int64_t> counts(const std::vector<Rows>& rows) {
  std::vector<int64_t> out;
  for (const Rows& r : rows) out.push_back(r.count());
  return out;
}

using Counts = std::vector<int64_t>;

TEST_CASE("chunk cuts as torch.chunk does, with fewer pieces where it must") {
  CHECK(counts(chunk(30, 4)) == Counts{8, 8, 8, 6});
  CHECK(counts(chunk(5, 4)) == Counts{2, 2, 1, 0});
  CHECK(counts(chunk(9, 8)) == Counts{2, 2, 2, 2, 1, 0, 0, 0});
  CHECK(counts(chunk(7, 2)) == Counts{4, 3});
  CHECK(counts(chunk(0, 3)) == Counts{0, 0, 0});
}

TEST_CASE("a batch is cut over devices by torch's chunks, then over each device's workers") {
  const Topology dp{.devices_per_rank = 2, .workers_per_device = 2, .shards = 4};
  CHECK(rows_of_shards(dp, {10}) == std::vector<Rows>{{0, 3}, {3, 5}, {5, 8}, {8, 10}});
}

TEST_CASE("every rank's batch is cut by itself, counted from its own beginning") {
  const Topology ddp{.ranks = 2, .workers_per_device = 2, .shards = 4};
  CHECK(rows_of_shards(ddp, {4, 3}) == std::vector<Rows>{{0, 2}, {2, 4}, {0, 2}, {2, 3}});
}

TEST_CASE("reproducible shards are the same whoever owns them") {
  const Topology one{.shards = 8, .reproducible = true};
  const Topology many{.ranks = 2, .workers_per_device = 3, .shards = 8, .reproducible = true};
  for (int64_t n : {0, 1, 5, 8, 13, 100}) {
    CHECK(rows_of_shards(one, {n}) == rows_of_shards(many, {n}));
    CHECK(rows_of_shards(one, {n}).back().end == n);
  }
}

TEST_CASE("every shard has one owner, ranks own blocks, and a worker may own none") {
  for (int workers : {1, 2, 3, 4, 8})
    for (int shards : {1, 2, 3, 8, 16}) {
      const Topology topology{.ranks = workers, .shards = shards, .reproducible = true};
      int owned = 0, last = -1;
      for (int w = 0; w < workers; ++w)
        for (int s : topology.shards_of(w)) {
          CHECK(s == last + 1);
          last = s;
          ++owned;
        }
      CHECK(owned == shards);
    }
  const Topology few{.ranks = 4, .shards = 2, .reproducible = true};
  CHECK(few.shards_of(1).empty());
  CHECK(few.shards_of_rank(0) == Rows{0, 1});
  CHECK(few.shards_of_rank(1) == Rows{});
}

TEST_CASE("a shard group has one owner, and one of its loss") {
  const Topology topology{
      .devices_per_rank = 2, .workers_per_device = 2, .shards = 9, .reproducible = true};
  CHECK(topology.shard_groups(false) == std::vector<Rows>{{0, 3}, {3, 5}, {5, 7}, {7, 9}});
  CHECK(topology.shard_groups(true).size() == 9);
  Topology gathered = topology;
  gathered.loss_device = 1;
  CHECK(gathered.shard_groups(false) == topology.shard_groups(false));
}

TEST_CASE("with the loss on one device its workers compute the loss of all shards") {
  const Topology topology{
      .devices_per_rank = 3, .workers_per_device = 2, .shards = 6, .loss_device = 1};
  for (int s = 0; s < 6; ++s) CHECK(topology.loss_owner(s) / topology.workers_per_device == 1);
  CHECK(topology.loss_owner(0) != topology.loss_owner(1));
}

TEST_CASE("ranks own the shards of all their devices") {
  const Topology topology{.ranks = 2, .devices_per_rank = 2, .workers_per_device = 3, .shards = 12};
  CHECK(topology.shards_of_rank(0) == Rows{0, 6});
  CHECK(topology.shards_of_rank(1) == Rows{6, 12});
  CHECK(topology.shards_of(7) == std::vector<int>{7});
  for (int s = 0; s < 12; ++s) CHECK(topology.loss_owner(s) == topology.owner(s));
}

TEST_CASE("a replica's batch norm sums over the shards of its device, or over all") {
  const Topology topology{.ranks = 2, .devices_per_rank = 2, .workers_per_device = 2, .shards = 8};
  for (int s = 0; s < 8; ++s) {
    CHECK(topology.replica_of(s, false) == Rows{s / 2 * 2, s / 2 * 2 + 2});
    CHECK(topology.replica_of(s, true) == Rows{0, 8});
  }
}

TEST_CASE("hosts have consecutive ranks, their workers, and these workers' shards") {
  Topology topology{.ranks = 5, .workers_per_device = 2, .shards = 8, .first_ranks = {0, 1, 4}};
  CHECK(topology.hosts() == 3);
  CHECK(topology.ranks_of_host(1) == Rows{1, 4});
  CHECK(topology.workers_of_host(0) == Rows{0, 2});
  CHECK(topology.workers_of_host(2) == Rows{8, 10});
  CHECK(topology.shards_of_host(0) == Rows{0, 2});  // shard 2 is of worker 2 of 10
  CHECK(topology.shards_of_host(1) == Rows{2, 7});
  CHECK(topology.shards_of_host(2) == Rows{7, 8});
  CHECK(topology.host_of_shard(6) == 1);
  const Topology one{.ranks = 2, .shards = 2};
  CHECK(one.hosts() == 1);
  CHECK(one.workers_of_host(0) == Rows{0, 2});
  CHECK(one.shards_of_host(0) == Rows{0, 2});
  topology.shards = 2;
  CHECK(topology.shards_of_host(2) == Rows{});
}

TEST_CASE("batches that do not fit the topology are refused") {
  const Topology even{.shards = 2, .reproducible = true};
  CHECK_THROWS_AS(rows_of_shards(even, {4, 4}), Error);  // reproducible runs have one common batch
  const Topology three{.ranks = 3, .shards = 3};
  CHECK_THROWS_AS(rows_of_shards(three, {4, 4}), Error);
  const Topology few{.ranks = 2, .workers_per_device = 2, .shards = 3};
  CHECK_THROWS_AS(rows_of_shards(few, {4}), Error);
}

}  // namespace
}  // namespace dpt
