#include "session/batch_partitioner.h"

#include <algorithm>
#include <vector>

#include <doctest/doctest.h>

namespace dpt {
namespace {

// How often each sample of a rank's order is used in an epoch.
std::vector<int> uses(const BatchPartitioner& partitioner, const Topology& topology, int rank,
                      int64_t samples) {
  std::vector<int> out(static_cast<size_t>(samples));
  StepRows rows;
  for (int64_t b = 0; b < partitioner.steps(); ++b) {
    partitioner.step(b, rows);
    int64_t sum = 0;
    for (const auto& micro : rows.micro)
      for (int s = 0; s < topology.shards; ++s) {
        const Rows& r = micro[static_cast<size_t>(s)].rows;
        sum += r.count();
        if (partitioner.per_replica_sampling() && topology.rank_of(topology.owner(s)) != rank)
          continue;
        for (int64_t i = r.begin; i < r.end; ++i) ++out[static_cast<size_t>(i)];
      }
    CHECK(sum == rows.samples);
  }
  return out;
}

TEST_CASE("every sample is used once, for all small sizes, worlds, batches and micro-batches") {
  for (int64_t n = 1; n <= 17; ++n)
    for (int ranks = 1; ranks <= 4; ++ranks)
      for (int64_t batch = 1; batch <= 6; ++batch)
        for (int64_t accumulate : {1, 2, 3}) {
          const Topology ddp{.ranks = ranks, .workers_per_device = 2, .shards = 2 * ranks};
          const Batches assigned{.assignment = {n, ranks, SampleAssignment::Remainder::exact},
                                 .batch = batch};
          const BatchPartitioner a(assigned, ddp, accumulate);
          for (int r = 0; r < ranks; ++r)
            for (int u : uses(a, ddp, r, assigned.assignment.of(r))) CHECK(u == 1);
          const Topology fixed{.ranks = ranks, .shards = 4, .reproducible = true};
          const BatchPartitioner b(
              {.assignment = {n, 1, SampleAssignment::Remainder::exact}, .batch = batch}, fixed,
              accumulate);
          for (int u : uses(b, fixed, 0, n)) CHECK(u == 1);
        }
}

TEST_CASE("a shard knows its place in the batch of all replicas") {
  const Topology ddp{.ranks = 2, .workers_per_device = 2, .shards = 4};
  const BatchPartitioner partitioner(
      {.assignment = {11, 2, SampleAssignment::Remainder::exact}, .batch = 4}, ddp, 1);
  StepRows rows;
  partitioner.step(1, rows);  // rank 0 has samples 4 and 5 of its six left, rank 1 one of its five
  CHECK(rows.samples == 3);
  CHECK(rows.micro[0][0].rows == Rows{4, 5});
  CHECK(rows.micro[0][1].rows == Rows{5, 6});
  CHECK(rows.micro[0][2].rows == Rows{4, 5});
  CHECK(rows.micro[0][2].first_sample == 2);
  CHECK(rows.micro[0][3].rows.count() == 0);
}

TEST_CASE("all rows that shard groups have are known beforehand") {
  const Topology two{.workers_per_device = 2, .shards = 2};
  const BatchPartitioner partitioner(
      {.assignment = {205, 1, SampleAssignment::Remainder::exact}, .batch = 100}, two, 1);
  CHECK(partitioner.shard_group_rows({{0, 1}, {1, 2}}) ==
        std::vector<ShardGroupRows>{{{2}, 3}, {{3}, 3}, {{50}, 50}});

  const Topology eight{.workers_per_device = 2, .shards = 8, .reproducible = true};
  const BatchPartitioner fixed(
      {.assignment = {105, 1, SampleAssignment::Remainder::exact}, .batch = 100}, eight, 1);
  CHECK(fixed.shard_group_rows(eight.shard_groups(false)) ==
        std::vector<ShardGroupRows>{{{0, 1, 0, 1}, 1}, {{1, 0, 1, 1}, 1}, {{12, 13, 12, 13}, 13}});
}

}  // namespace
}  // namespace dpt
