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

TEST_CASE("single takes one device with all cores, whatever `devices` says") {
  const ModeType& single = mode_named("single");
  for (const std::optional<int> devices : {std::optional<int>(), std::optional(2)}) {
    const Topology topology = single.topology({}, {.devices = devices, .machine_cores = 3});
    CHECK(topology.ranks * topology.devices_per_rank == 1);
    CHECK(topology.workers_per_device == 3);
    CHECK(topology.shards == 3);
  }
  const Topology placed =
      single.topology({}, {.devices = 6, .machine_cores = 4, .devices_per_replica = 2});
  CHECK(placed.devices_per_rank == 2);
  CHECK(placed.replicas() == 1);
}

}  // namespace dpt
