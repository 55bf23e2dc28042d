#include <doctest/doctest.h>

#include "parallel/plans.h"

namespace dpt {
namespace {

const std::string kMicro =
    "each micro-batch:\n"
    "  each shard   load, forward, loss, backward\n";

}  // namespace

TEST_CASE("replicas of one worker only meet to sum the loss, and to average weights") {
  const ModeQuery query{.devices = 2, .cores = 1};
  CHECK(planned("local_sgd", "{every: 8}", query) ==
        kMicro +
            "update:\n"
            "  all          barrier\n"
            "  each worker  sum_loss, decide, sum_shards, update\n"
            "  all          barrier (every 8 steps)\n"
            "  each worker  all_reduce weights (every 8 steps)\n"
            "  all          barrier (every 8 steps)\n");
}

TEST_CASE("the workers of a replica share its update behind barriers of their rank") {
  const ModeQuery query{.devices = 2, .cores = 2};
  CHECK(planned("local_sgd", "{every: 3}", query,
                {.divisor_from_targets = true, .clip_norm = true}) ==
        "once a step:\n"
        "  each shard   load_targets, prologue\n"
        "  each rank    barrier\n"
        "  each worker  sum_divisor\n" +
            kMicro +
            "update:\n"
            "  all          barrier\n"
            "  each worker  sum_loss, sum_squares\n"
            "  each rank    barrier\n"
            "  each worker  decide, sum_shards, update\n"
            "  each rank    barrier\n"
            "  all          barrier (every 3 steps)\n"
            "  each worker  all_reduce weights (every 3 steps)\n"
            "  all          barrier (every 3 steps)\n");
}

// The sums of a single sync point lie in one place.
TEST_CASE("sums of batch norm are written again only after a barrier of the rank") {
  const auto between = [](int cores, const PlanQuery& query) {
    const ModeQuery q{.devices = 2, .cores = cores};
    return planned("local_sgd", "", q, query).find("barrier, if another micro-batch") !=
           std::string::npos;
  };
  CHECK(between(2, {.forward_sync_points = 1, .accumulates = true}));
  CHECK_FALSE(between(1, {.forward_sync_points = 1, .accumulates = true}));
  CHECK_FALSE(
      between(2, {.forward_sync_points = 1, .backward_sync_points = 1, .accumulates = true}));
  CHECK_FALSE(between(2, {.forward_sync_points = 1}));
}

TEST_CASE("a single replica has nothing to average: its plan is single's") {
  CHECK(planned("local_sgd", "", {.devices = 1, .cores = 2}) ==
        planned("single", "", {.cores = 2}));
}

TEST_CASE("an average after every step needs no condition") {
  const ModeType& mode = mode_named("local_sgd");
  const Plan plan =
      plan_of(mode, mode.topology(mode_settings(mode, "1"), {.devices = 2, .cores = 1}));
  CHECK(plan.average_every == 1);
  CHECK(plan.str().find("all_reduce weights\n") != std::string::npos);
}

TEST_CASE("replicas of local_sgd are ranks with samples and weights of their own") {
  const ModeType& mode = mode_named("local_sgd");
  const std::any eight = mode_settings(mode, "{every: 8, devices: 3, timeout: 5}");
  const Topology t = mode.topology(eight, {.devices = 3, .cores = 2});
  CHECK(t.ranks == 3);
  CHECK(t.devices_per_rank == 1);
  CHECK(t.per_replica_sampling);
  CHECK(t.replicas_own_weights());
  CHECK(t.average_every == 8);
  CHECK(t.workers_with(3) == Rows{2, 4});
  CHECK(t.shards_with(3) == Rows{2, 4});
  CHECK(mode.devices(eight) == 3);
  CHECK(mode.timeout(eight) == 5);
  CHECK(mode.topology(eight, {.devices = 3, .world = 2}).ranks == 2);
  const Topology ddp = mode_named("ddp").topology({}, {.devices = 3, .cores = 2});
  CHECK_FALSE(ddp.replicas_own_weights());
  CHECK(ddp.workers_with(3) == Rows{0, 6});
  CHECK(ddp.shards_with(3) == Rows{0, 6});
}

TEST_CASE("fixed shards are split evenly across replicas, whatever their cores") {
  const ModeType& mode = mode_named("local_sgd");
  const std::any settings = mode_settings(mode, "");
  for (const int cores : {1, 2}) {
    const Topology t = mode.topology(settings, {.devices = 2, .cores = cores, .shards = 6});
    CHECK(t.shards_with(0) == Rows{0, 3});
    CHECK(t.shards_with(cores) == Rows{3, 6});
  }
  CHECK_THROWS_WITH_AS(mode.topology(settings, {.devices = 2, .shards = 5}),
                       "5 shards cannot be split evenly across 2 replicas, each of which trains "
                       "its own shards; use `reproducible: 6`",
                       Error);
}

TEST_CASE("local_sgd refuses GPUs, and layers on several devices") {
  const ModeType& mode = mode_named("local_sgd");
  const std::any settings = mode_settings(mode, "");
  CHECK_THROWS_WITH_AS(mode.topology(settings, {.devices = 2, .gpus = true}),
                       "parallel mode 'local_sgd' trains on CPUs only: GPUs cannot average the "
                       "weights of their replicas between steps; write `device: cpu`, or "
                       "`parallel: ddp`",
                       Error);
  CHECK_THROWS_WITH_AS(mode.topology(settings, {.devices = 2, .devices_per_replica = 2}),
                       "parallel mode 'local_sgd' needs the whole model on one device, but layers "
                       "are placed on 2 devices; write `parallel: ddp`, whose replicas may span "
                       "devices, or leave out `device` of the layers",
                       Error);
}

}  // namespace dpt
