#include "comm/team.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comm/interrupted_break_up.h"
#include "comm/shared_memory.h"
#include "skip.h"

namespace dpt {
namespace {

using namespace std::chrono_literals;

struct TestTeam {
  explicit TestTeam(const TeamShape& shape, const TeamSettings& settings = {})
      : memory(SharedMemory::create(Team::bytes(shape) + 4096)),
        team(Team::create(memory.span(), shape, settings)),
        payload(reinterpret_cast<int*>(memory.data() + Team::bytes(shape))) {}
  SharedMemory memory;
  Team team;
  int* payload;  // [1024]
};

// Every worker adds to plain ints that others read after the barrier: wrong sums, and a report by
// the thread sanitizer, if a barrier let anybody through too early.
void count_together(TestTeam& t, int workers, int rounds) {
  std::vector<std::jthread> threads;
  std::atomic<int> wrong = 0;
  for (int w = 0; w < workers; ++w)
    threads.emplace_back([&t, &wrong, w, workers, rounds] {
      for (int round = 1; round <= rounds; ++round) {
        t.payload[w] += round;
        t.team.barrier(w);
        for (int other = 0; other < workers; ++other)
          if (t.payload[other] != round * (round + 1) / 2) ++wrong;
        t.team.barrier(w);
      }
    });
  threads.clear();
  CHECK(wrong == 0);
}

TEST_CASE("nobody passes a barrier before all have come, on enough cores and on too few") {
  for (const int workers : {1, 2, 3, 4, 8})
    for (const int cores : {1, 100}) {
      CAPTURE(workers);
      CAPTURE(cores);
      TestTeam t({.ranks = 1, .workers_per_rank = workers}, {.cores = cores});
      count_together(t, workers, 100);
    }
}

TEST_CASE("processes wait at barriers as threads do") {
  TestTeam t({.ranks = 3, .workers_per_rank = 1});
  for (int r = 0; r < 3; ++r)
    if (fork() == 0) {
      for (int round = 1; round <= 500; ++round) {
        t.payload[r] += round;
        t.team.barrier(r);
        for (int other = 0; other < 3; ++other)
          if (t.payload[other] != round * (round + 1) / 2) _exit(1);
        t.team.barrier(r);
      }
      _exit(0);
    }
  for (int r = 0; r < 3; ++r) {
    int status = -1;
    wait(&status);
    CHECK(status == 0);
  }
}

TEST_CASE("a rank's workers wait at a barrier without the other ranks") {
  TestTeam t({.ranks = 2, .workers_per_rank = 2});
  std::vector<std::jthread> threads;
  for (const int worker : {2, 3})
    threads.emplace_back([&t, worker] {
      for (int i = 0; i < 100; ++i) t.team.rank_barrier(worker);
      ++t.payload[worker];
    });
  threads.clear();
  CHECK(t.payload[2] + t.payload[3] == 2);
}

TEST_CASE("who waits for another's posts sees what it wrote before") {
  for (const int cores : {1, 100}) {
    TestTeam t({.ranks = 1, .workers_per_rank = 2}, {.cores = cores});
    constexpr int kRounds = 2000;
    int wrong = 0;
    {
      const std::jthread writer([&] {
        for (int i = 0; i < kRounds; ++i) {
          t.payload[i % 1024] = i;
          t.team.post(0);
          if (i % 512 == 511) t.team.wait_for(1, static_cast<uint32_t>(i / 512) + 1);
        }
      });
      for (int i = 0; i < kRounds; ++i) {
        t.team.wait_for(0, static_cast<uint32_t>(i) + 1);
        wrong += t.payload[i % 1024] != i;
        if (i % 512 == 511) t.team.post(1);
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("some workers wait at a barrier without the others") {
  TestTeam t({.ranks = 1, .workers_per_rank = 4}, {.cores = 2});
  std::vector<std::jthread> threads;
  std::atomic<int> wrong = 0;
  for (const int worker : {0, 2, 3})
    threads.emplace_back([&t, &wrong, worker] {
      const std::vector<int> some = {0, 2, 3};
      for (int round = 1; round <= 300; ++round) {
        t.payload[worker] += round;
        t.team.barrier_among(worker, some);
        for (int other : some)
          if (t.payload[other] != round * (round + 1) / 2) ++wrong;
        t.team.barrier_among(worker, some);
      }
    });
  threads.clear();
  CHECK(wrong == 0);
}

TEST_CASE("a broken team throws in those who wait for one worker, too; so does a late one") {
  {
    TestTeam t({.ranks = 2, .workers_per_rank = 1});
    const std::jthread breaks([&t] {
      std::this_thread::sleep_for(20ms);
      t.team.break_up(1, "rank 1 fell over", 4);
    });
    CHECK_THROWS_WITH_AS(t.team.wait_for(1, 1), "rank 1 fell over", TeamBroken);
    const std::vector<int> both = {0, 1};
    CHECK_THROWS_AS(t.team.barrier_among(0, both), TeamBroken);
  }
  TestTeam t({.ranks = 2, .workers_per_rank = 1}, {.stuck_s = 0.02});
  CHECK_THROWS_WITH_AS(t.team.wait_for(1, 1),
                       "worker 1 of rank 1 while starting did not reach the barrier within "
                       "0.02 s",
                       TeamBroken);
}

TEST_CASE("a team needs a worker, and memory that is large enough and aligned") {
  const TeamShape shape{.ranks = 2, .workers_per_rank = 1};
  const SharedMemory memory = SharedMemory::create(Team::bytes(shape) + 4096);
  CHECK_THROWS_AS(Team::create(memory.span(), {.ranks = 0, .workers_per_rank = 1}), Error);
  CHECK_THROWS_AS(Team::create(memory.span(), {.ranks = 1, .workers_per_rank = 0}), Error);
  CHECK_THROWS_AS(Team::create(memory.span().first(Team::bytes(shape) - 1), shape), Error);
  CHECK_THROWS_AS(Team::create(memory.span().subspan(64), shape), Error);
  CHECK_NOTHROW(Team::create(memory.span().first(Team::bytes(shape)), shape));
  CHECK(Team::bytes(shape) % 4096 == 0);
}

TEST_CASE("a worker knows its place") {
  TestTeam t({.ranks = 2, .workers_per_rank = 3});
  const WorkerInfo p = t.team.info(4);
  CHECK(p.worker == 4);
  CHECK(p.workers == 6);
  CHECK(p.rank == 1);
  CHECK(p.ranks == 2);
  CHECK(p.workers_per_rank == 3);
}

TEST_CASE("a broken team throws in everyone who waits or comes, with the first reason") {
  for (const int cores : {1, 100}) {  // asleep and spinning
    TestTeam t({.ranks = 2, .workers_per_rank = 2}, {.cores = cores});
    std::vector<std::string> heard(4);
    std::vector<std::jthread> threads;
    for (int w = 0; w < 3; ++w)
      threads.emplace_back([&, w] {
        try {
          w == 2 ? t.team.rank_barrier(w) : t.team.barrier(w);
        } catch (const TeamBroken& e) {
          heard[static_cast<size_t>(w)] = e.what();
        }
      });
    std::this_thread::sleep_for(20ms);
    CHECK_FALSE(t.team.broken());
    CHECK(t.team.reason().empty());
    CHECK(t.team.break_up(1, "rank 1 fell over", 4));
    CHECK_FALSE(t.team.break_up(0, "rank 0 too"));
    threads.clear();
    try {
      t.team.barrier(3);
    } catch (const TeamBroken& e) {
      heard[3] = e.what();
      CHECK(e.fault() == Fault::rank);
    }
    CHECK(heard == std::vector<std::string>(4, "rank 1 fell over"));
    CHECK(t.team.broken_by() == 1);
    CHECK(t.team.exit_code() == 4);
  }
}

TEST_CASE("one of many that break a team up at once wins, with its whole text") {
  for (int round = 0; round < 50; ++round) {
    TestTeam t({.ranks = 4, .workers_per_rank = 1});
    std::atomic<int> winners = 0, told = 0;
    std::vector<std::jthread> threads;
    for (int r = 0; r < 4; ++r)
      threads.emplace_back([&, r] {
        winners += t.team.break_up(r, std::string(300, static_cast<char>('a' + r)));
        told += t.team.claim_message();
      });
    threads.clear();
    CHECK(winners == 1);
    CHECK(told == 1);
    CHECK(t.team.reason() == std::string(300, static_cast<char>('a' + t.team.broken_by())));
  }
}

#if !defined(__SANITIZE_THREAD__)  // which does not follow processes
TEST_CASE("a rank that is killed within break_up leaves its code") {
  TestTeam t({.ranks = 2, .workers_per_rank = 1});
  if (skip_without(kill_within_break_up(t.team, 1, 4), "ptrace")) return;
  CHECK(t.team.exit_code() == 4);
  CHECK(t.team.broken_by() == 1);
  CHECK_FALSE(t.team.break_up(0, "rank 0 too"));
  CHECK(t.team.reason() == "a rank ended before it could report its error");
}
#endif

TEST_CASE("a rank that tells its own end is asked before the others, and spoken for once") {
  TestTeam t({.ranks = 3, .workers_per_rank = 1});
  t.team.break_up(1, "no such file", 4, true);
  CHECK_FALSE(t.team.claim_message());
  CHECK_FALSE(t.team.claim_message(0));
  CHECK(t.team.claim_message(1));
  CHECK_FALSE(t.team.claim_message(1));
}

TEST_CASE("rank 0 claims the message of its own end") {
  TestTeam t({.ranks = 2, .workers_per_rank = 1});
  t.team.break_up(0, "no such file", 4, true);
  CHECK_FALSE(t.team.claim_message(1));
  CHECK(t.team.claim_message(0));
}

TEST_CASE("a reason that is too long is cut off") {
  TestTeam t({});
  t.team.break_up(0, std::string(2000, 'x'));
  CHECK(t.team.reason() == std::string(Team::kLongestReason, 'x'));
}

std::string reason_of_waiting(TestTeam& t, int worker) {
  try {
    t.team.barrier(worker);
  } catch (const TeamBroken& e) {
    return e.what();
  }
  return "no error";
}

TEST_CASE("who does not come is named: at the start, and later with the step") {
  TestTeam start({.ranks = 2, .workers_per_rank = 2}, {.stuck_s = 0.05});
  std::jthread([&] { reason_of_waiting(start, 0); }).join();
  CHECK(start.team.reason() ==
        "worker 1 of rank 0 while starting, worker 2 of rank 1 while starting, "
        "worker 3 of rank 1 while starting did not reach the barrier within 0.05 s");
  CHECK(start.team.broken_by() == 0);

  TestTeam later({.ranks = 2, .workers_per_rank = 1}, {.stuck_s = 0.05});
  later.team.set_pid(1, 811);
  std::jthread other([&] {
    later.team.set_progress(1, {.epoch = 2, .step = 137, .phase = Phase::training});
    later.team.barrier(1);
  });
  later.team.barrier(0);
  other.join();
  CHECK(reason_of_waiting(later, 0) ==
        "worker 1 of rank 1 (pid 811) at epoch 2, step 137 did not reach the barrier within "
        "0.05 s");
  CHECK(later.team.broken_by() == 1);
}

TEST_CASE("the first worker is named, too, where it does not come") {
  TestTeam t({.ranks = 2, .workers_per_rank = 1}, {.stuck_s = 0.05});
  CHECK(reason_of_waiting(t, 1) ==
        "worker 0 of rank 0 while starting did not reach the barrier within 0.05 s");
  CHECK(t.team.broken_by() == 0);
}

TEST_CASE("a rank's barrier names the rank's own workers only") {
  TestTeam t({.ranks = 3, .workers_per_rank = 2}, {.stuck_s = 0.05});
  CHECK_THROWS_WITH_AS(t.team.rank_barrier(2),
                       "worker 3 of rank 1 while starting did not reach the barrier within 0.05 s",
                       TeamBroken);
  CHECK(t.team.broken_by() == 1);
}

TEST_CASE("who writes files is waited for without a timeout, and not when the team is broken") {
  TestTeam t({.ranks = 2, .workers_per_rank = 1}, {.stuck_s = 0.05});
  std::jthread other([&] {
    t.team.barrier(1);
    std::this_thread::sleep_for(100ms);
    t.team.barrier_without_limit(1);
    std::this_thread::sleep_for(20ms);
    t.team.break_up(1, "a full disk");
  });
  t.team.barrier(0);
  t.team.barrier_without_limit(0);
  CHECK_THROWS_WITH_AS(t.team.barrier_without_limit(0), "a full disk", TeamBroken);
}

TEST_CASE("progress reads as a place in the run") {
  TestTeam t({.ranks = 2, .workers_per_rank = 2});
  CHECK(t.team.where_is(1) == "while starting");
  t.team.set_progress(2, {.epoch = 1, .step = 9, .phase = Phase::saving});
  CHECK(t.team.where_is(1) == "at epoch 1, step 9 while saving");
  CHECK(t.team.progress(1).step == 9);
  CHECK(t.team.where_is(0) == "while starting");
  const auto location = [&](const Progress& p) {
    t.team.set_progress(0, p);
    return t.team.where_is(0);
  };
  CHECK(location({.phase = Phase::training}) == "before its first step");
  CHECK(location({.phase = Phase::evaluating}) == "while evaluating");
  CHECK(location({.epoch = 1, .phase = Phase::training}) == "at epoch 1, step 0");
  CHECK(location({.epoch = 1, .step = 9, .phase = Phase::evaluating}) ==
        "at epoch 1, step 9 while evaluating");
  CHECK(location({.epoch = 2, .step = 9, .phase = Phase::finished}) ==
        "at epoch 2, step 9 after its last step");
}

TEST_CASE("ranks of several hosts have their number among all ranks, and their host") {
  TestTeam t({.ranks = 2, .workers_per_rank = 1}, {.first_rank = 6, .host = "host 3 (hostd)"});
  CHECK(t.team.name_of(1) == "rank 7 on host 3 (hostd)");
  t.team.set_pid(1, 811);
  CHECK(t.team.name_of(1) == "rank 7 (pid 811) on host 3 (hostd)");
  CHECK(t.team.name_of(1, "signal unknown") ==
        "rank 7 (pid 811, signal unknown) on host 3 (hostd)");
  CHECK(t.team.prefix_of(1) == "rank 7: ");
  CHECK(t.team.host() == "host 3 (hostd)");
  TestTeam one({.ranks = 1, .workers_per_rank = 1});
  CHECK(one.team.prefix_of(0) == "");
  TestTeam alone({.ranks = 1, .workers_per_rank = 1}, {.first_rank = 1, .host = "host 1 (b)"});
  CHECK(alone.team.prefix_of(0) == "rank 1: ");
  TestTeam long_name({}, {.host = std::string(500, 'x')});
  CHECK(long_name.team.host() == std::string(Team::kLongestHost, 'x'));
}

TEST_CASE("each beat of a rank's heart counts, and the last one says so") {
  TestTeam t({.ranks = 2, .workers_per_rank = 1});
  CHECK(t.team.heartbeat(1) == 0);
  for (uint32_t beat = 1; beat <= 3; ++beat) {
    t.team.beat(1);
    CHECK(t.team.heartbeat(1) == beat);
  }
  t.team.end_heartbeat(1);
  CHECK(t.team.heartbeat(1) == Team::kEnded);
  CHECK(t.team.heartbeat(0) == 0);
}

TEST_CASE("all workers stop after the same step, whenever the signal comes") {
  TestTeam t({.ranks = 1, .workers_per_rank = 4}, {.cores = 1});
  std::vector<std::jthread> threads;
  for (int w = 0; w < 4; ++w)
    threads.emplace_back([&t, w] {
      while (t.team.agreed_stop(w) == 0) {
        ++t.payload[w];
        t.team.publish_stop(w);
        t.team.barrier(w);
      }
    });
  std::this_thread::sleep_for(20ms);
  t.team.stop_word() = 15;
  threads.clear();
  CHECK(t.team.agreed_stop() == 15);
  for (int w = 1; w < 4; ++w) CHECK(t.payload[w] == t.payload[0]);
}

TEST_CASE("worker 0 alone publishes a stop, once, and it holds behind the next barrier") {
  TestTeam t({.ranks = 1, .workers_per_rank = 2});
  const auto barrier = [&] {
    std::jthread other([&] { t.team.barrier(1); });
    t.team.barrier(0);
  };
  barrier();
  t.team.publish_stop(0);  // nobody has asked
  t.team.stop_word() = 15;
  t.team.publish_stop(1);
  CHECK(t.team.agreed_stop() == 0);
  t.team.publish_stop(0);
  CHECK(t.team.agreed_stop() == 15);
  CHECK(t.team.agreed_stop(0) == 0);
  barrier();
  t.team.stop_word() = 2;
  t.team.publish_stop(0);  // the first one holds
  CHECK(t.team.agreed_stop(0) == 15);
  CHECK(t.team.agreed_stop(1) == 15);
}

TEST_CASE("another process finds the team in the memory; anything else is no team") {
  TestTeam t({.ranks = 2, .workers_per_rank = 1});
  const SharedMemory again = SharedMemory::adopt(dup(t.memory.fd()), t.memory.bytes());
  Team same = Team::attach(again.span());
  CHECK(same.shape().ranks == 2);
  same.break_up(1, "seen by both");
  CHECK(t.team.reason() == "seen by both");
  const SharedMemory empty = SharedMemory::create(4096);
  CHECK_THROWS_AS(Team::attach(empty.span()), Error);
  // A team of many ranks, of which only the beginning was handed over.
  TestTeam many({.ranks = 64, .workers_per_rank = 1});
  CHECK_THROWS_AS(Team::attach(many.memory.span().first(4096)), Error);
  CHECK_THROWS_AS(Team::attach(many.memory.span().first(64)), Error);
}

}  // namespace
}  // namespace dpt
