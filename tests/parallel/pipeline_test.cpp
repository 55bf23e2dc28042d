#include <doctest/doctest.h>
#include <fmt/format.h>

#include "parallel/plans.h"

namespace dpt {
namespace {

Topology placed(const std::string& yaml, const ModeQuery& query) {
  const ModeType& mode = mode_named("pipeline");
  return mode.topology(mode_settings(mode, yaml), query);
}

TEST_CASE("replicas of a pipeline are processes, their stages threads or processes") {
  const Topology two = placed("{stages: 2, chunks: 4}", {.machine_cores = 4});
  CHECK(two.ranks == 1);
  CHECK(two.devices_per_rank == 2);
  CHECK(two.devices_per_replica == 2);
  CHECK(two.workers_per_device == 2);
  CHECK(two.shards == 2);
  CHECK_FALSE(two.per_replica_sampling);
  const Topology hybrid = placed("{stages: 2, data_parallel: 3}", {.machine_cores = 2});
  CHECK(hybrid.ranks == 3);
  CHECK(hybrid.devices_per_rank == 2);
  CHECK(hybrid.replicas() == 3);
  CHECK(hybrid.shards == 3);
  CHECK(hybrid.per_replica_sampling);
  const Topology apart =
      placed("{stages: 2, data_parallel: 3, processes: true}", {.machine_cores = 2});
  CHECK(apart.ranks == 6);
  CHECK(apart.devices_per_rank == 1);
  for (int shard = 0; shard < 3; ++shard) {
    CHECK(apart.owner(shard) == 2 * shard);
    CHECK(apart.owner(shard, 1) == 2 * shard + 1);
  }
  CHECK(placed("{stages: 3}", {.world = 3}).ranks == 3);
  CHECK(placed("{stages: 3, data_parallel: 2}", {.world = 2}).devices_per_rank == 3);
}

TEST_CASE("a pipeline says what does not fit") {
  CHECK_THROWS_WITH_AS(placed("{stages: 2, data_parallel: 2}", {.devices = 3}),
                       "`devices` is 3, but `parallel: {pipeline: ...}` asks for 2 replicas of 2 "
                       "stages, which are 4 devices; leave `devices` out, or change `stages` or "
                       "`data_parallel`",
                       Error);
  CHECK_THROWS_WITH_AS(placed("{stages: 2, data_parallel: 2}", {.world = 3}),
                       "3 ranks were started; 2 replicas of 2 stages take 4, one for each device, "
                       "or 2, one for each replica",
                       Error);
  CHECK_THROWS_AS(placed("{stages: 2}", {.devices_per_replica = 2}), Error);
}

TEST_CASE("what replicas share needs two of them") {
  const ModeType& mode = mode_named("pipeline");
  for (const char* key : {"shard: optimizer", "compress: bf16"}) {
    const std::string keys = fmt::format("{{stages: 2, {}", key);
    CHECK_THROWS_AS(mode_settings(mode, keys + "}"), Error);
    const Exchange asked = mode.exchange(mode_settings(mode, keys + ", data_parallel: 2}"));
    CHECK((asked.shard_states || asked.compress == DType::bf16));
  }
}

TEST_CASE("who copies between stages can be chosen where these are processes") {
  const ModeType& mode = mode_named("pipeline");
  CHECK_THROWS_AS(mode_settings(mode, "{backend: gloo}"), Error);
  CHECK(mode.exchange(mode_settings(mode, "{backend: gloo, processes: true}")).backend ==
        Exchange::Backend::host);
}

TEST_CASE("how long devices wait for each other can be chosen") {
  const ModeType& mode = mode_named("pipeline");
  CHECK_FALSE(mode.timeout(mode_settings(mode, "{stages: 2}")));
  CHECK(mode.timeout(mode_settings(mode, "{timeout: 1.5}")) == 1.5);
  CHECK_THROWS_AS(mode_settings(mode, "{timeout: 0}"), Error);
}

TEST_CASE("devices of a pipeline do their ops, then all sum and update") {
  const ModeType& mode = mode_named("pipeline");
  const Plan plan = mode.rewrite(
      basic_plan({}), {.topology = placed("{stages: 2, chunks: 2}", {.machine_cores = 2}),
                       .schedule = pipeline_schedule(ScheduleKind::one_f_one_b, {0, 1}, 2),
                       .stage_device = {0, 1}});
  CHECK(plan.str() ==
        "all micro-batches:\n"
        "  device 0     load 0, F0, record, load 1, F1, record, wait for B0 of device 1, B0, "
        "record,\n"
        "               wait for B1 of device 1, B1, record\n"
        "  device 1     wait for F0 of device 0, load 0, F0, loss 0, record, B0, record,\n"
        "               wait for F1 of device 0, load 1, F1, loss 1, record, B1, record\n"
        "update:\n"
        "  all          barrier\n"
        "  each worker  sum_loss, decide, sum_shards, update\n"
        "  all          barrier\n");
}

}  // namespace
}  // namespace dpt
