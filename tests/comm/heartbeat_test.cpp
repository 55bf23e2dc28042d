#include "comm/heartbeat.h"

#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <unistd.h>

#include "comm/shared_memory.h"

namespace dpt {
namespace {

using namespace std::chrono_literals;

// Two ranks, threads of this process, that find each other's silence soon.
struct Pair {
  static constexpr TeamShape kShape{.ranks = 2, .workers_per_rank = 1};
  SharedMemory memory = SharedMemory::create(Team::bytes(kShape));
  Team team = Team::create(memory.span(), kShape, {.timeout_s = 0.3});
};

TEST_CASE("a rank that falls silent is named with its process, its place and what to do") {
  Pair p;
  p.team.set_pid(1, 811);
  p.team.set_progress(1, {.epoch = 2, .step = 137, .phase = Phase::saving});
  p.team.beat(1);
  const Heartbeat zero(p.team, 0);
  CHECK_THROWS_WITH_AS(p.team.barrier_without_limit(0),
                       "rank 1 (pid 811) has not responded for 0.3 s, at epoch 2, step 137 while "
                       "saving: its process is suspended or gets no CPU time; if that is intended, "
                       "raise `timeout` of the parallel mode",
                       TeamBroken);
  CHECK(p.team.broken_by() == 1);
  CHECK(p.team.exit_code() == 6);
}

TEST_CASE("ranks whose processes run wait for each other for longer than the timeout") {
  Pair p;
  const Heartbeat zero(p.team, 0), one(p.team, 1);
  const std::jthread other([&] {
    std::this_thread::sleep_for(600ms);
    p.team.barrier(1);
  });
  p.team.barrier(0);
  CHECK_FALSE(p.team.broken());
}

TEST_CASE("a rank that is done is expected no more") {
  Pair p;
  { const Heartbeat one(p.team, 1); }
  const Heartbeat zero(p.team, 0);
  std::this_thread::sleep_for(600ms);
  CHECK_FALSE(p.team.broken());
}

TEST_CASE("a rank whose starter has ended ends the run, and says how it would not") {
  Pair p;
  p.team.set_pid(0, 811);
  std::optional<Heartbeat> one(std::in_place, p.team, 1);
  {
    const Heartbeat zero(p.team, 0, {.pid = getppid(), .name = "torchrun"});
    std::this_thread::sleep_for(100ms);
    CHECK_FALSE(p.team.broken());
  }
  const Heartbeat zero(p.team, 0, {.pid = 77, .name = "torchrun"});
  CHECK_THROWS_WITH_AS(p.team.barrier(1),
                       "torchrun (pid 77), which started rank 0 (pid 811), has ended while "
                       "starting; to keep ranks running without it, set DPTRAIN_OUTLIVE_LAUNCHER=1",
                       TeamBroken);
  CHECK(p.team.exit_code() == 6);
}

}  // namespace
}  // namespace dpt
