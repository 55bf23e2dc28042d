#include <doctest/doctest.h>
#include <fmt/format.h>

#include "parallel/plans.h"

namespace dpt {

TEST_CASE("ddp's plan is single's: what differs is the workers that a barrier spans") {
  CHECK(planned("ddp", "", {.devices = 2, .machine_cores = 2}) ==
        planned("single", "", {.machine_cores = 2}));
}

TEST_CASE("accumulation is no_sync: micro-batches end without a barrier, but those of batch norm") {
  const ModeQuery query{.devices = 2, .machine_cores = 2};
  const std::string update =
      "update:\n"
      "  all          barrier\n"
      "  each worker  sum_loss, decide, sum_shards, update\n"
      "  all          barrier\n";
  CHECK(planned("ddp", "", query) ==
        "each micro-batch:\n"
        "  each shard   load, forward, loss, backward\n" +
            update);
  CHECK(planned("ddp", "", query, {.forward_sync_points = 1, .backward_sync_points = 1}) ==
        "each micro-batch:\n"
        "  each shard   load, forward (1 sum over shards), loss, backward (1 sum over shards)\n" +
            update);
}

// Masks that the first worker draws, and the sums of a single sync point, lie in one place.
TEST_CASE("what others still read is written again only after a barrier between micro-batches") {
  const ModeQuery query{.devices = 2, .cores = 2};
  const auto meets_between = [&](const ModeQuery& q, const PlanQuery& p) {
    return planned("ddp", "", q, p).find("barrier, if another micro-batch") != std::string::npos;
  };
  CHECK(planned("ddp", "", query, {.torch_masks = true, .accumulates = true}) ==
        "each micro-batch:\n"
        "  first worker draw_masks\n"
        "  all          barrier\n"
        "  each shard   load, forward, loss, backward\n"
        "  all          barrier, if another micro-batch follows\n"
        "update:\n"
        "  all          barrier\n"
        "  each worker  sum_loss, decide, sum_shards, update\n"
        "  all          barrier\n");
  CHECK_FALSE(meets_between(query, {.torch_masks = true}));
  CHECK(meets_between(query, {.forward_sync_points = 1, .accumulates = true}));
  // Two cuts take turns.
  CHECK_FALSE(meets_between(
      query, {.forward_sync_points = 1, .backward_sync_points = 1, .accumulates = true}));
  // Nobody else reads the sums of a replica with one worker, unless they are of all replicas.
  const ModeQuery one_core{.devices = 2, .cores = 1};
  CHECK_FALSE(meets_between(one_core, {.forward_sync_points = 1, .accumulates = true}));
  CHECK(meets_between(
      one_core, {.forward_sync_points = 1, .sync_across_replicas = true, .accumulates = true}));
}

TEST_CASE("the barriers of a step are those of its plan") {
  const auto barriers = [](const PlanQuery& query, int64_t micro_batches) {
    const ModeType& ddp = mode_named("ddp");
    return plan_of(ddp, ddp.topology({}, {.devices = 2, .cores = 2}), query)
        .barriers(micro_batches);
  };
  CHECK(barriers({}, 1) == 2);
  CHECK(barriers({.accumulates = true}, 3) == 2);
  CHECK(barriers({.divisor_from_targets = true, .clip_norm = true}, 1) == 4);
  // Before each micro-batch once its masks are drawn, and between them.
  CHECK(barriers({.torch_masks = true, .accumulates = true}, 3) == 2 + 3 + 2);
}

TEST_CASE("gradients are compressed once a step, by the owners of the shards, before the barrier") {
  CHECK(planned("ddp", "{compress: fp16}", {.devices = 2, .machine_cores = 2},
                {.clip_norm = true, .compresses = true}) ==
        "each micro-batch:\n"
        "  each shard   load, forward, loss, backward\n"
        "update:\n"
        "  each shard   compress\n"
        "  all          barrier\n"
        "  each worker  sum_loss, sum_squares\n"
        "  all          barrier\n"
        "  each worker  decide, sum_shards, update\n"
        "  all          barrier\n");
  const ModeType& ddp = mode_named("ddp");
  CHECK(ddp.exchange(mode_settings(ddp, "{compress: fp16}")).compress == DType::f16);
  CHECK(ddp.exchange(mode_settings(ddp, "{compress: bf16}")).compress == DType::bf16);
  CHECK(ddp.exchange(mode_settings(ddp, "{shard: optimizer}")).shard_states);
  CHECK_FALSE(ddp.exchange(mode_settings(ddp, "")).compress);
  CHECK_FALSE(ddp.exchange(mode_settings(ddp, "")).shard_states);
}

TEST_CASE("a device is a rank, and ranks that were started are taken as they are") {
  const ModeType& ddp = mode_named("ddp");
  const Topology two = ddp.topology({}, {.devices = 2, .machine_cores = 4});
  CHECK(two.ranks == 2);
  CHECK(two.workers_per_device == 2);
  CHECK(ddp.topology({}, {.machine_cores = 4, .world = 3}).ranks == 3);
  CHECK(ddp.topology({}, {.devices = 2, .world = 3}).ranks == 3);  // the launcher's number counts
  CHECK(ddp.topology({}, {.devices = 4, .world = 3, .devices_per_replica = 2}).devices_per_rank ==
        2);
}

TEST_CASE("where no number is written, ddp takes at least two replicas and at most four") {
  const ModeType& ddp = mode_named("ddp");
  CHECK(ddp.topology({}, {.machine_cores = 1}).ranks == 2);
  CHECK(ddp.topology({}, {.machine_cores = 1}).workers_per_device ==
        1);  // fewer cores than devices
  CHECK(ddp.topology({}, {.machine_cores = 3}).ranks == 3);
  CHECK(ddp.topology({}, {.machine_cores = 16}).ranks == 4);
  const Topology spanning = ddp.topology({}, {.machine_cores = 6, .devices_per_replica = 2});
  CHECK(spanning.ranks == 3);
  CHECK(spanning.devices_per_rank == 2);
  CHECK(spanning.workers_per_device == 1);
  CHECK_THROWS_WITH_AS(ddp.topology({}, {.devices = 5, .devices_per_replica = 3}),
                       "the layers of a replica are placed on 3 devices, so 5 devices cannot be "
                       "divided into replicas; use `devices: 6`",
                       Error);
}

TEST_CASE("at most 1024 workers are possible") {
  const ModeType& ddp = mode_named("ddp");
  CHECK(ddp.topology({}, {.devices = 2, .cores = 512}).total_workers() == 1024);
  CHECK_THROWS_WITH_AS(ddp.topology({}, {.devices = 5, .cores = 205}),
                       "5 devices with 205 cores each are 1025 workers; at most 1024 are possible, "
                       "so lower `devices` or `cores`",
                       Error);
}

TEST_CASE("the timeout of ddp, and who sums its gradients, can be chosen") {
  const ModeType& ddp = mode_named("ddp");
  CHECK_FALSE(ddp.timeout(mode_settings(ddp, "")));
  CHECK(ddp.timeout(mode_settings(ddp, "{timeout: 1.5}")) == 1.5);
  for (const char* name : {"dp", "ddp"}) {
    const ModeType& mode = mode_named(name);
    const Exchange none = mode.exchange(mode_settings(mode, ""));
    CHECK_FALSE(none.backend);
    CHECK_FALSE(none.bucket_mib);
    const Exchange host = mode.exchange(mode_settings(mode, "{backend: gloo, bucket_cap_mb: 7}"));
    CHECK(host.backend == Exchange::Backend::host);
    CHECK(host.bucket_mib == 7);
    CHECK(mode.exchange(mode_settings(mode, "{backend: nccl}")).backend == Exchange::Backend::nccl);
  }
}

TEST_CASE("the main value of dp and ddp is the number of devices") {
  for (const char* name : {"dp", "ddp"}) {
    const ModeType& mode = mode_named(name);
    const auto asked = [&](const std::string& yaml, std::optional<int64_t> devices) {
      return devices_asked({&mode, mode_settings(mode, yaml), {}}, devices);
    };
    CHECK(asked("3", {}) == 3);
    CHECK(asked("3", 3) == 3);
    CHECK(asked("{devices: 3, backend: gloo}", {}) == 3);
    CHECK(asked("{backend: gloo}", 2) == 2);
    CHECK(asked("", {}) == std::nullopt);
    CHECK_THROWS_WITH_AS(asked("1", 2),
                         fmt::format("`devices` is 2, but `parallel: {{{}: ...}}` asks for 1 "
                                     "device; write one of the two, or the same number in both",
                                     name)
                             .c_str(),
                         Error);
  }
}

TEST_CASE("reproducible shards do not depend on the number of ranks") {
  const ModeType& ddp = mode_named("ddp");
  const Topology topology = ddp.topology({}, {.devices = 3, .shards = 8});
  CHECK(topology.shards == 8);
  CHECK(topology.reproducible);
  CHECK_FALSE(topology.per_replica_sampling);
  CHECK(ddp.topology({}, {.devices = 3}).per_replica_sampling);
}

}  // namespace dpt
