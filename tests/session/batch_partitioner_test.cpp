#include "session/batch_partitioner.h"

#include <algorithm>
#include <vector>

#include <doctest/doctest.h>

namespace dpt {
namespace {

// How often each sample of a rank's order is used in an epoch.
std::vector<int> uses(const StepCutter& cutter, const Topology& who, int rank, int64_t samples) {
  std::vector<int> out(static_cast<size_t>(samples));
  StepRows rows;
  for (int64_t b = 0; b < cutter.steps(); ++b) {
    cutter.step(b, rows);
    int64_t sum = 0;
    for (const auto& micro : rows.micro)
      for (int s = 0; s < who.shards; ++s) {
        const Rows& r = micro[static_cast<size_t>(s)].rows;
        sum += r.count();
        if (cutter.dealt() && who.rank_of(who.owner(s)) != rank) continue;
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
          const Topology ddp{.ranks = ranks, .workers = 2, .shards = 2 * ranks};
          const Batches dealt{.deal = {n, ranks, Deal::Rest::exact}, .batch = batch};
          const StepCutter a(dealt, ddp, accumulate);
          for (int r = 0; r < ranks; ++r)
            for (int u : uses(a, ddp, r, dealt.deal.of(r))) CHECK(u == 1);
          const Topology fixed{.ranks = ranks, .shards = 4, .reproducible = true};
          const StepCutter b({.deal = {n, 1, Deal::Rest::exact}, .batch = batch}, fixed,
                             accumulate);
          for (int u : uses(b, fixed, 0, n)) CHECK(u == 1);
        }
}

TEST_CASE("a shard knows its place in the batch of all replicas") {
  const Topology ddp{.ranks = 2, .workers = 2, .shards = 4};
  const StepCutter cutter({.deal = {11, 2, Deal::Rest::exact}, .batch = 4}, ddp, 1);
  StepRows rows;
  cutter.step(1, rows);  // rank 0 has samples 4 and 5 of its six left, rank 1 one of its five
  CHECK(rows.samples == 3);
  CHECK(rows.micro[0][0].rows == Rows{4, 5});
  CHECK(rows.micro[0][1].rows == Rows{5, 6});
  CHECK(rows.micro[0][2].rows == Rows{4, 5});
  CHECK(rows.micro[0][2].first_sample == 2);
  CHECK(rows.micro[0][3].rows.count() == 0);
}

TEST_CASE("all rows that groups of shards have are known beforehand") {
  const Topology two{.workers = 2, .shards = 2};
  const StepCutter cutter({.deal = {205, 1, Deal::Rest::exact}, .batch = 100}, two, 1);
  CHECK(cutter.group_rows({{0, 1}, {1, 2}}) ==
        std::vector<GroupRows>{{{2}, 3}, {{3}, 3}, {{50}, 50}});

  const Topology eight{.workers = 2, .shards = 8, .reproducible = true};
  const StepCutter fixed({.deal = {105, 1, Deal::Rest::exact}, .batch = 100}, eight, 1);
  CHECK(fixed.group_rows(eight.groups(false)) ==
        std::vector<GroupRows>{{{0, 1, 0, 1}, 1}, {{1, 0, 1, 1}, 1}, {{12, 13, 12, 13}, 13}});
}

}  // namespace
}  // namespace dpt
