#include <doctest/doctest.h>

#include "parallel/plans.h"

namespace dpt {

TEST_CASE("one worker needs no barrier") {
  CHECK(planned("single", "", {.machine_cores = 1}) ==
        "each micro-batch:\n"
        "  each shard   load, forward, loss, backward\n"
        "update:\n"
        "  each worker  sum_loss, decide, sum_shards, update\n");
}

TEST_CASE("the cores of one device wait at a barrier before the sum and after the update") {
  CHECK(planned("single", "", {.machine_cores = 2}) ==
        "each micro-batch:\n"
        "  each shard   load, forward, loss, backward\n"
        "update:\n"
        "  all          barrier\n"
        "  each worker  sum_loss, decide, sum_shards, update\n"
        "  all          barrier\n");
}

TEST_CASE("a divisor from the targets, clipping and torch's masks each add what they need") {
  CHECK(planned("single", "", {.machine_cores = 2},
                {.divisor_from_targets = true, .clip_norm = true, .torch_masks = true}) ==
        "once a step:\n"
        "  each shard   load_targets, prologue\n"
        "  all          barrier\n"
        "  each worker  sum_divisor\n"
        "each micro-batch:\n"
        "  first worker draw_masks\n"
        "  all          barrier\n"
        "  each shard   load, forward, loss, backward\n"
        "update:\n"
        "  all          barrier\n"
        "  each worker  sum_loss, sum_squares\n"
        "  all          barrier\n"
        "  each worker  decide, sum_shards, update\n"
        "  all          barrier\n");
}

TEST_CASE("single takes one device, all cores, and refuses more devices") {
  const ModeType& single = mode_named("single");
  const Topology topology = single.topology({}, {.machine_cores = 3});
  CHECK(topology.workers_per_device == 3);
  CHECK(topology.shards == 3);
  CHECK_THROWS_WITH_AS(
      single.topology({}, {.devices = 2}),
      "parallel mode 'single' uses one device, not 2; for several write `parallel: "
      "dp` or `parallel: ddp`",
      Error);
}

}  // namespace dpt
