#include <doctest/doctest.h>

#include "parallel/plans.h"

namespace dpt {

TEST_CASE("dp gathers the outputs, computes the loss on one device, scatters its gradient") {
  CHECK(planned("dp", "", {.devices = 3, .machine_cores = 3}) ==
        "each micro-batch:\n"
        "  each shard   load, forward, gather\n"
        "  all          barrier\n"
        "  loss device  loss\n"
        "  all          barrier\n"
        "  each shard   scatter, backward\n"
        "update:\n"
        "  all          barrier\n"
        "  each worker  sum_loss, decide, sum_shards, update\n"
        "  all          barrier\n");
}

TEST_CASE("a distributed loss needs no gathering") {
  CHECK(planned("dp", "{loss: distributed}", {.devices = 2, .machine_cores = 2}) ==
        "each micro-batch:\n"
        "  each shard   load, forward, loss, backward\n"
        "update:\n"
        "  all          barrier\n"
        "  each worker  sum_loss, decide, sum_shards, update\n"
        "  all          barrier\n");
}

TEST_CASE("dp on one device has nothing to gather, and layers on several devices are refused") {
  CHECK(planned("dp", "", {.devices = 1, .machine_cores = 1}) ==
        "each micro-batch:\n"
        "  each shard   load, forward, loss, backward\n"
        "update:\n"
        "  each worker  sum_loss, decide, sum_shards, update\n");
  const ModeType& dp = mode_named("dp");
  CHECK_THROWS_AS(dp.topology(mode_settings(dp, ""), {.devices = 4, .devices_per_replica = 2}),
                  Error);
}

TEST_CASE("an output_device that nothing would be gathered on is refused") {
  CHECK_THROWS_AS(mode_settings(mode_named("dp"), "{loss: distributed, output_device: 1}"), Error);
  CHECK_NOTHROW(mode_settings(mode_named("dp"), "{loss: gathered, output_device: 1}"));
}

TEST_CASE("dp takes at least two devices and at most four where none are written") {
  const ModeType& dp = mode_named("dp");
  const std::any settings = mode_settings(dp, "");
  CHECK(dp.topology(settings, {.machine_cores = 1}).devices_per_rank == 2);
  CHECK(dp.topology(settings, {.machine_cores = 3}).devices_per_rank == 3);
  const Topology large = dp.topology(settings, {.machine_cores = 16});
  CHECK(large.devices_per_rank == 4);
  CHECK(large.workers_per_device == 4);
}

TEST_CASE("output_device chooses the loss's device, and must be one") {
  const ModeType& dp = mode_named("dp");
  const std::any last = mode_settings(dp, "{output_device: 2}");
  CHECK(dp.topology(last, {.devices = 3}).loss_device == 2);
  CHECK_THROWS_WITH_AS(dp.topology(last, {.devices = 2}),
                       "output_device 2 is not one of the 2 devices 0..1", Error);
}

}  // namespace dpt
