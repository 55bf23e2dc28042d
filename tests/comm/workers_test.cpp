#include "comm/workers.h"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <sched.h>

#include "base/fail.h"
#include "comm/shared_memory.h"

namespace dpt {
namespace {

struct TestTeam {
  explicit TestTeam(const TeamShape& shape)
      : memory(SharedMemory::create(Team::bytes(shape))),
        team(Team::create(memory.span(), shape)) {}
  SharedMemory memory;
  Team team;
};

TEST_CASE("each worker of the rank runs once, under its number in the team") {
  TestTeam t({.ranks = 3, .workers_per_rank = 4});
  std::atomic<int> seen = 0;
  run_workers(t.team, 1, [&](int worker) {
    t.team.rank_barrier(worker);
    seen |= 1 << worker;
  });
  CHECK(seen == 0xf0);
}

TEST_CASE("workers take numbers below 1.2e-38 as 0, and the calling thread only meanwhile") {
  TestTeam t({.ranks = 1, .workers_per_rank = 2});
  const volatile float tiny = 1e-40F, small = 2e-38F, half = 0.5F;
  std::atomic<int> zeros = 0;
  run_workers(t.team, 0, [&](int) {
    if (tiny * 2 == 0) ++zeros;      // an operand
    if (small * half == 0) ++zeros;  // a result
  });
#if defined(__x86_64__) || defined(__aarch64__)
  CHECK(zeros == 4);
#endif
  CHECK(tiny * 2 > 0);
}

TEST_CASE("a failure is reported while it is handled; TeamBroken is nobody's own") {
  TestTeam t({.ranks = 2, .workers_per_rank = 1});
  try {
    throw TeamBroken("another rank failed");
  } catch (...) {
    report_failure(t.team, 1);
  }
  CHECK_FALSE(t.team.broken());
  try {
    fail(Fault::data, "bad data");
  } catch (...) {
    report_failure(t.team, 1);
  }
  CHECK(t.team.broken_by() == 1);
  CHECK(t.team.reason() == "bad data");
  CHECK(t.team.exit_code() == static_cast<int>(Fault::data));
}

TEST_CASE("a connection that broke is reported once nobody says within a second why") {
  for (const bool told : {true, false}) {
    CAPTURE(told);
    TestTeam t({.ranks = 2, .workers_per_rank = 1});
    std::jthread launcher;
    try {
      fail(Fault::rank, "a connection broke");
    } catch (...) {
      if (told)
        launcher = std::jthread([&] {
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
          t.team.break_up(1, "rank 1 was killed");
        });
      report_failure(t.team, 0);
    }
    CHECK(t.team.reason() == (told ? "rank 1 was killed" : "a connection broke"));
    CHECK(t.team.broken_by() == (told ? 1 : 0));
  }
}

TEST_CASE("a worker's error ends the others and is the one that is thrown") {
  for (const int culprit : {0, 2}) {
    TestTeam t({.ranks = 1, .workers_per_rank = 3});
    try {
      run_workers(t.team, 0, [&](int worker) {
        t.team.barrier(worker);
        if (worker == culprit) fail(Fault::data, "worker {} has bad data", worker);
        t.team.barrier(worker);
      });
      FAIL("no error");
    } catch (const TeamBroken&) {
      FAIL("not the error itself");
    } catch (const Error& e) {
      CHECK(e.what() == fmt::format("worker {} has bad data", culprit));
      CHECK(t.team.reason() == e.what());
      CHECK(t.team.exit_code() == 4);
    }
  }
}

TEST_CASE("another rank's failure arrives as TeamBroken") {
  TestTeam t({.ranks = 2, .workers_per_rank = 2});
  t.team.break_up(1, "rank 1 is gone");
  CHECK_THROWS_WITH_AS(run_workers(t.team, 0, [&](int worker) { t.team.barrier(worker); }),
                       "rank 1 is gone", TeamBroken);
}

TEST_CASE("workers are pinned, and the calling thread is let go") {
  cpu_set_t before, after;
  sched_getaffinity(0, sizeof before, &before);
  int cpu = 0;
  while (!CPU_ISSET(static_cast<size_t>(cpu), &before)) ++cpu;
  TestTeam t({.ranks = 1, .workers_per_rank = 2});
  std::atomic<int> wrong = 0;
  const int cpus[] = {cpu, cpu};
  run_workers(
      t.team, 0,
      [&](int) {
        cpu_set_t own;
        sched_getaffinity(0, sizeof own, &own);
        wrong += CPU_COUNT(&own) != 1 || sched_getcpu() != cpu;
      },
      cpus);
  CHECK(wrong == 0);
  sched_getaffinity(0, sizeof after, &after);
  CHECK(CPU_EQUAL(&before, &after) != 0);
}

TEST_CASE("workers without a core of their own, or with one that does not exist, run anywhere") {
  cpu_set_t before;
  sched_getaffinity(0, sizeof before, &before);
  TestTeam t({.ranks = 1, .workers_per_rank = 3});
  std::atomic<int> wrong = 0;
  const int cpus[] = {-1, CPU_SETSIZE};
  run_workers(
      t.team, 0,
      [&](int) {
        cpu_set_t own;
        sched_getaffinity(0, sizeof own, &own);
        wrong += CPU_EQUAL(&before, &own) == 0;
      },
      cpus);
  CHECK(wrong == 0);
}

TEST_CASE("a rank's exit code is its own error's, or 6 for another's") {
  const auto code_of = [](const std::function<int()>& body) {
    TestTeam t({.ranks = 2, .workers_per_rank = 1});
    t.team.claim_message();  // keeps the test quiet
    return run_rank(t.team, 1, body);
  };
  CHECK(code_of([] { return 0; }) == 0);
  CHECK(code_of([] { return 130; }) == 130);
  CHECK(code_of([]() -> int { fail(Fault::data, "x"); }) == 4);
  CHECK(code_of([]() -> int { throw std::runtime_error("x"); }) == 1);
  CHECK(code_of([]() -> int { throw std::bad_alloc(); }) == 5);
  CHECK(code_of([]() -> int { throw TeamBroken("x"); }) == 6);
}

}  // namespace
}  // namespace dpt
