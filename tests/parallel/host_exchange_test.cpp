#include "parallel/host_exchange.h"

#include <doctest/doctest.h>

#include "parallel/plans.h"

namespace dpt {
namespace {

// The plan of ddp for so many hosts of one rank each, with so many buckets.
Plan of_hosts(int hosts, size_t buckets, const PlanQuery& query = {},
              const std::vector<size_t>& made_after = {}) {
  Topology topology{.ranks = hosts, .shards = 8, .reproducible = true};
  for (int h = 0; h < hosts; ++h) topology.first_ranks.push_back(h);
  return mode_named("ddp").rewrite(
      basic_plan(query),
      {.topology = topology, .host_buckets = buckets, .host_made_after = made_after});
}

}  // namespace

TEST_CASE("hosts exchange parts of gradients, and then the weights that they have updated") {
  const std::string two = of_hosts(2, 1).str();
  CHECK(two ==
        "each micro-batch:\n"
        "  each shard   load, forward, loss, backward\n"
        "update:\n"
        "  all          barrier\n"
        "  each worker  sum_gradients of bucket 0\n"
        "  all          barrier\n"
        "  each leader  all_gather results, reduce_scatter bucket 0, wait for results, wait for "
        "bucket 0\n"
        "  all          barrier\n"
        "  each worker  sum_loss, decide, sum_parts, update bucket 0\n"
        "  all          barrier\n"
        "  each leader  all_gather bucket 0, wait for weights\n"
        "  all          barrier\n");
  CHECK(of_hosts(3, 1).str() == two);
}

TEST_CASE("while a bucket is on its way, the next is summed and the one before is updated") {
  CHECK(of_hosts(3, 3).str() ==
        "each micro-batch:\n"
        "  each shard   load, forward, loss, backward\n"
        "update:\n"
        "  all          barrier\n"
        "  each worker  sum_gradients of bucket 0\n"
        "  all          barrier\n"
        "  each leader  all_gather results, reduce_scatter bucket 0, wait for results\n"
        "  all          barrier\n"
        "  each worker  sum_gradients of bucket 1, sum_loss, decide\n"
        "  all          barrier\n"
        "  each leader  reduce_scatter bucket 1, wait for bucket 0\n"
        "  all          barrier\n"
        "  each worker  sum_gradients of bucket 2, sum_parts, update bucket 0\n"
        "  all          barrier\n"
        "  each leader  all_gather bucket 0, reduce_scatter bucket 2, wait for bucket 1\n"
        "  all          barrier\n"
        "  each worker  sum_parts, update bucket 1\n"
        "  all          barrier\n"
        "  each leader  all_gather bucket 1, wait for bucket 2\n"
        "  all          barrier\n"
        "  each worker  sum_parts, update bucket 2\n"
        "  all          barrier\n"
        "  each leader  all_gather bucket 2, wait for weights\n"
        "  all          barrier\n");
}

TEST_CASE("clipping exchanges norm partials, and divisors from targets are exchanged first") {
  CHECK(of_hosts(2, 2,
                 {.divisor_from_targets = true,
                  .clip_norm = true,
                  .compresses = true,
                  .accumulates = true})
            .str() ==
        "once a step:\n"
        "  each shard   load_targets, prologue\n"
        "  all          barrier\n"
        "  each leader  all_gather results, wait for results\n"
        "  all          barrier\n"
        "  each worker  sum_divisor\n"
        "each micro-batch:\n"
        "  each shard   load, forward, loss, backward\n"
        "update:\n"
        "  each shard   compress\n"
        "  all          barrier\n"
        "  each worker  sum_gradients of bucket 0\n"
        "  all          barrier\n"
        "  each leader  all_gather results, reduce_scatter bucket 0, wait for results\n"
        "  all          barrier\n"
        "  each worker  sum_gradients of bucket 1, sum_loss\n"
        "  all          barrier\n"
        "  each leader  reduce_scatter bucket 1, wait for bucket 0\n"
        "  all          barrier\n"
        "  each worker  sum_parts of bucket 0\n"
        "  all          barrier\n"
        "  each leader  wait for bucket 1\n"
        "  all          barrier\n"
        "  each worker  sum_parts of bucket 1, sum_squares\n"
        "  all          barrier\n"
        "  each leader  all_gather squares, wait for squares\n"
        "  all          barrier\n"
        "  each worker  decide, update bucket 0, update bucket 1\n"
        "  all          barrier\n"
        "  each leader  all_gather bucket 0, all_gather bucket 1, wait for weights\n"
        "  all          barrier\n");
}

TEST_CASE("buckets are sent during the backward part, as soon as they are complete") {
  const Plan plan = of_hosts(2, 4, {}, {5, 9, 9});
  CHECK(plan.str() ==
        "each micro-batch:\n"
        "  each shard   load, forward, loss, backward to bucket 0\n"
        "  all          barrier\n"
        "  each worker  sum_gradients of bucket 0\n"
        "  all          barrier\n"
        "  each leader  reduce_scatter bucket 0\n"
        "  each shard   backward to bucket 2\n"
        "  all          barrier\n"
        "  each worker  sum_gradients of bucket 1, sum_gradients of bucket 2\n"
        "  all          barrier\n"
        "  each leader  reduce_scatter bucket 1, reduce_scatter bucket 2\n"
        "  each shard   backward\n"
        "update:\n"
        "  all          barrier\n"
        "  each worker  sum_gradients of bucket 3\n"
        "  all          barrier\n"
        "  each leader  all_gather results, reduce_scatter bucket 3, wait for results, wait for "
        "bucket 0\n"
        "  all          barrier\n"
        "  each worker  sum_loss, decide, sum_parts, update bucket 0\n"
        "  all          barrier\n"
        "  each leader  all_gather bucket 0, wait for bucket 1\n"
        "  all          barrier\n"
        "  each worker  sum_parts, update bucket 1\n"
        "  all          barrier\n"
        "  each leader  all_gather bucket 1, wait for bucket 2\n"
        "  all          barrier\n"
        "  each worker  sum_parts, update bucket 2\n"
        "  all          barrier\n"
        "  each leader  all_gather bucket 2, wait for bucket 3\n"
        "  all          barrier\n"
        "  each worker  sum_parts, update bucket 3\n"
        "  all          barrier\n"
        "  each leader  all_gather bucket 3, wait for weights\n"
        "  all          barrier\n");
  CHECK(plan.barriers(1) == 4 + 11);
  CHECK_FALSE(plan.splits_shards());  // only the last shard group of a worker is divided
}

TEST_CASE("with accumulation, buckets are sent in the last micro-batch, and compressed before") {
  const Plan plan =
      of_hosts(2, 3, {.clip_norm = true, .compresses = true, .accumulates = true}, {5});
  CHECK(plan.str() ==
        "each micro-batch:\n"
        "  each shard   load, forward, loss, backward to bucket 0, compress bucket 0 (last "
        "micro-batch)\n"
        "  all          barrier (last micro-batch)\n"
        "  each worker  sum_gradients of bucket 0 (last micro-batch)\n"
        "  all          barrier (last micro-batch)\n"
        "  each leader  reduce_scatter bucket 0 (last micro-batch)\n"
        "  each shard   backward\n"
        "update:\n"
        "  each shard   compress bucket 1, compress bucket 2\n"
        "  all          barrier\n"
        "  each worker  sum_gradients of bucket 1\n"
        "  all          barrier\n"
        "  each leader  all_gather results, reduce_scatter bucket 1, wait for results, wait for "
        "bucket 0\n"
        "  all          barrier\n"
        "  each worker  sum_gradients of bucket 2, sum_loss, sum_parts of bucket 0\n"
        "  all          barrier\n"
        "  each leader  reduce_scatter bucket 2, wait for bucket 1\n"
        "  all          barrier\n"
        "  each worker  sum_parts of bucket 1\n"
        "  all          barrier\n"
        "  each leader  wait for bucket 2\n"
        "  all          barrier\n"
        "  each worker  sum_parts of bucket 2, sum_squares\n"
        "  all          barrier\n"
        "  each leader  all_gather squares, wait for squares\n"
        "  all          barrier\n"
        "  each worker  decide, update bucket 0, update bucket 1, update bucket 2\n"
        "  all          barrier\n"
        "  each leader  all_gather bucket 0, all_gather bucket 1, all_gather bucket 2, wait for "
        "weights\n"
        "  all          barrier\n");
  CHECK(plan.barriers(4) == plan.barriers(1));
}

TEST_CASE("a single host has the plan without an exchange") {
  Topology one{.ranks = 2, .shards = 8, .first_ranks = {0}};
  const ModeType& ddp = mode_named("ddp");
  Topology plain = one;
  plain.first_ranks.clear();
  CHECK(plan_of(ddp, one).str() == plan_of(ddp, plain).str());
}

}  // namespace dpt
