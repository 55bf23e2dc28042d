#include "comm/heartbeat.h"

#include <array>
#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "comm/shared_memory.h"

namespace dpt {
namespace {

using namespace std::chrono_literals;

// Standard error, while it lives, is a pipe that takes no more bytes.
class FullPipe {
 public:
  FullPipe() {
    REQUIRE(pipe2(ends_, O_NONBLOCK) == 0);
    const std::string page(4096, ' ');
    while (write(ends_[1], page.data(), page.size()) > 0) {
    }
    fcntl(ends_[1], F_SETFL, 0);  // blocks, as pipes of shells do
    dup2(ends_[1], STDERR_FILENO);
  }
  ~FullPipe() {
    dup2(kept_, STDERR_FILENO);
    for (const int fd : {kept_, ends_[0], ends_[1]}) close(fd);
  }
  FullPipe(const FullPipe&) = delete;
  FullPipe& operator=(const FullPipe&) = delete;

  // Reads what is in the pipe. Returns what is not its filling.
  std::string drain() {
    std::string out;
    std::array<char, 4096> buffer;
    for (ssize_t n; (n = read(ends_[0], buffer.data(), buffer.size())) > 0;)
      out.append(buffer.data(), static_cast<size_t>(n));
    out.erase(0, out.find_first_not_of(' '));
    return out;
  }

 private:
  int ends_[2] = {-1, -1};
  int kept_ = dup(STDERR_FILENO);
};

// Two ranks, threads of this process, that find each other's silence soon.
struct Pair {
  static constexpr TeamShape kShape{.ranks = 2, .workers_per_rank = 1};
  SharedMemory memory = SharedMemory::create(Team::bytes(kShape));
  Team team;
  explicit Pair(double timeout_s = 0.3)
      : team(Team::create(memory.span(), kShape, {.timeout_s = timeout_s})) {}
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

TEST_CASE("silences that are each shorter than the timeout do not add up") {
  Pair p(1.0);
  const Heartbeat zero(p.team, 0);  // looks ten times a second
  for (int round = 0; round < 3; ++round) {
    const uint32_t before = p.team.heartbeat(0);
    while (p.team.heartbeat(0) < before + 5) std::this_thread::sleep_for(1ms);
    p.team.beat(1);
  }
  CHECK_FALSE(p.team.broken());
}

TEST_CASE("a rank that is done is expected no more") {
  Pair p;
  { const Heartbeat one(p.team, 1); }
  const Heartbeat zero(p.team, 0);
  std::this_thread::sleep_for(600ms);
  CHECK_FALSE(p.team.broken());
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which give threads a stack
TEST_CASE("a thread that cannot be started is an error that says what to do, and signals stay") {
  pthread_attr_t usual, endless;
  REQUIRE(pthread_getattr_default_np(&usual) == 0);
  pthread_attr_init(&endless);
  REQUIRE(pthread_attr_setstacksize(&endless, size_t{1} << 47) == 0);  // all of the addresses
  REQUIRE(pthread_setattr_default_np(&endless) == 0);
  sigset_t before, after;
  pthread_sigmask(SIG_BLOCK, nullptr, &before);
  std::string said;
  try {
    start_without_signals([] {}).join();
  } catch (const Error& e) {
    CHECK(e.fault() == Fault::rank);
    said = e.what();
  }
  pthread_setattr_default_np(&usual);
  pthread_sigmask(SIG_BLOCK, nullptr, &after);
  CHECK_MESSAGE(said.starts_with("cannot start a thread: "), said);
  CHECK_MESSAGE(said.find("ulimit -u") != std::string::npos, said);
  for (const int s : {SIGINT, SIGTERM, SIGUSR1})
    CHECK(sigismember(&before, s) == sigismember(&after, s));
}
#endif

TEST_CASE("of many ranks that stand still sixteen are shown") {
  constexpr TeamShape kMany{.ranks = 17, .workers_per_rank = 1};
  const SharedMemory memory = SharedMemory::create(Team::bytes(kMany));
  const Team team = Team::create(memory.span(), kMany, {.notice_s = 0.5});
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const int kept = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  std::string text;
  {
    const Heartbeat zero(team, 0);  // looks once a second, and at the start
    for (char c = 0; c != '\n' && read(ends[0], &c, 1) == 1;) text += c;
  }
  dup2(kept, STDERR_FILENO);
  for (const int fd : {kept, ends[0], ends[1]}) close(fd);
  CHECK_MESSAGE(text.starts_with("dptrain: no rank has begun a step for 0.5 s: rank 0 while "
                                 "starting, rank 1 while starting, "),
                text);
  CHECK_MESSAGE(text.find(", rank 15 while starting, ..., all processes respond, so the run "
                          "continues; ") != std::string::npos,
                text);
}

TEST_CASE("a rank whose messages nobody reads still beats, and prints them once somebody does") {
  constexpr TeamShape kOne{.ranks = 1, .workers_per_rank = 1};
  const SharedMemory memory = SharedMemory::create(Team::bytes(kOne));
  // A beat each 10 ms.
  const Team team = Team::create(memory.span(), kOne, {.timeout_s = 0.1, .notice_s = 0.03});
  FullPipe stderr_pipe;
  {
    const Heartbeat zero(team, 0);
    for (int i = 0; i < 5000 && team.heartbeat(0) < 20; ++i) std::this_thread::sleep_for(1ms);
    CHECK(team.heartbeat(0) >= 20);
    stderr_pipe.drain();
    const uint32_t before = team.heartbeat(0);
    for (int i = 0; i < 5000 && team.heartbeat(0) < before + 5; ++i)
      std::this_thread::sleep_for(1ms);
  }
  const std::string text = stderr_pipe.drain();
  CHECK_MESSAGE(text.starts_with("dptrain: no rank has begun a step for 0.03 s: "), text);
  CHECK(text.find('\n') == text.size() - 1);  // once
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
