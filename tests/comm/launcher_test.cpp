#include "comm/launcher.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/signals.h"
#include "comm/interrupted_break_up.h"
#include "comm/shared_memory.h"
#include "comm/workers.h"
#include "skip.h"

// The thread sanitizer has a thread of its own, and does not follow processes.
#if !defined(__SANITIZE_THREAD__)

namespace dpt {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

struct TestTeam {
  explicit TestTeam(const TeamShape& shape, const TeamSettings& settings = {})
      : memory(SharedMemory::create(Team::bytes(shape) + 4096)),
        team(Team::create(memory.span(), shape, settings)),
        flags(reinterpret_cast<std::atomic<int>*>(memory.data() + Team::bytes(shape))) {}
  SharedMemory memory;
  Team team;
  std::atomic<int>* flags;  // [1024], the tests' own
};

struct Outcome {
  int code = -1;                         // of the launcher; 1000 + signal when it was killed
  std::string text;                      // its stderr, and that of its ranks
  std::chrono::duration<double> took{};  // from done() to the end of the last process
};

// Calls launch() in a process of its own, with act(pid of that process) meanwhile.
template <class Act>
Outcome launch_apart(Team team, const std::function<int(int)>& body, Act act,
                     const LaunchSettings& settings = {}) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  std::fflush(nullptr);
  const pid_t launcher = fork();
  if (launcher == 0) {
    // doctest's handlers stay with doctest; and a test that hangs ends.
    for (const int s : {SIGINT, SIGTERM, SIGSEGV, SIGABRT}) std::signal(s, SIG_DFL);
    alarm(20);
    close(ends[0]);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    int code = 99;
    try {
      code = launch(team, body, settings);
    } catch (const Error& e) {
      fmt::print(stderr, "{}\n", e.report());
    }
    std::fflush(nullptr);
    _exit(code);
  }
  close(ends[1]);
  act(launcher);
  const Clock::time_point start = Clock::now();
  Outcome outcome;
  char buffer[4096];
  // The end of file comes when the last process that has the pipe is gone.
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;)
    outcome.text.append(buffer, static_cast<size_t>(n));
  outcome.took = Clock::now() - start;
  close(ends[0]);
  int status = 0;
  waitpid(launcher, &status, 0);
  outcome.code = WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
  return outcome;
}

Outcome launch_apart(Team team, const std::function<int(int)>& body) {
  return launch_apart(team, body, [](pid_t) {});
}

void wait_until(const std::atomic<int>& flag, int value) {
  for (int i = 0; i < 5000 && flag < value; ++i) std::this_thread::sleep_for(1ms);
  REQUIRE(flag >= value);
}

// Steps until the ranks agree to stop; flags[0] counts the steps.
int train(TestTeam& t, int rank) {
  t.flags[1 + rank] = getpid();
  run_workers(t.team, rank, [&](int worker) {
    for (int step = 1; t.team.agreed_stop(worker) == 0; ++step) {
      t.team.set_progress(worker, {.epoch = 3, .step = step, .phase = Phase::training});
      t.team.publish_stop(worker);
      t.team.barrier(worker);
      if (worker == 0) ++t.flags[0];
    }
  });
  return t.team.agreed_stop() == 0 ? 0 : exit_code_of(t.team.agreed_stop());
}

TEST_CASE("ranks run, each once, and the run's code is 0") {
  TestTeam t({.ranks = 4, .workers_per_rank = 1});
  const Outcome o = launch_apart(t.team, [&](int rank) {
    ++t.flags[rank];
    t.team.barrier(rank);
    return 0;
  });
  CHECK(o.code == 0);
  CHECK(o.text.empty());
  for (int r = 0; r < 4; ++r) CHECK(t.flags[r] == 1);
}

TEST_CASE("ranks that all hang after one has failed are killed, and its message is printed") {
  TestTeam t({.ranks = 2, .workers_per_rank = 1});
  const Outcome o = launch_apart(
      t.team,
      [&](int rank) {
        if (rank == 1) t.team.break_up(1, "rank 1 has bad data", 4, true);
        for (;;) std::this_thread::sleep_for(1s);
        return 0;
      },
      [](pid_t) {}, {.hang_ms = 100});
  CHECK(o.code == 4);
  CHECK(o.text == "dptrain: rank 1 has bad data; the other ranks were stopped\n");
}

TEST_CASE("a team of one rank needs no child") {
  TestTeam t({.ranks = 1, .workers_per_rank = 1});
  const pid_t here = getpid();
  CHECK(launch(t.team, [&](int) { return getpid() == here ? 3 : 0; }) == 3);
}

TEST_CASE("a rank that is killed ends the run with code 6 and one line that names it") {
  for (int round = 0; round < 6; ++round) {
    TestTeam t({.ranks = 3, .workers_per_rank = 2});
    const int victim = round % 3, signal = round < 3 ? SIGKILL : SIGSEGV;
    int pid = 0;
    const Outcome o = launch_apart(
        t.team, [&](int rank) { return train(t, rank); },
        [&](pid_t) {
          wait_until(t.flags[0], 5);
          std::this_thread::sleep_for(std::chrono::microseconds(rand() % 20'000));
          kill(pid = t.flags[1 + victim], signal);
        });
    CHECK(o.code == 6);
    CHECK(o.took < 1s);
    const std::string head =
        fmt::format("dptrain: rank {} (pid {}) was killed by signal {} (SIG{}) at epoch 3, step ",
                    victim, pid, signal, signal == SIGKILL ? "KILL" : "SEGV");
#if defined(__SANITIZE_ADDRESS__)
    if (signal == SIGSEGV) continue;  // the sanitizer catches it, reports and exits
#endif
    CAPTURE(o.text);
    CHECK(o.text.substr(0, head.size()) == head);
    CHECK(o.text.find("; the other ranks were stopped\n") == o.text.size() - 31);
    CHECK(std::count(o.text.begin(), o.text.end(), '\n') == 1);
  }
}

TEST_CASE("ranks that do not listen are killed, within a second") {
  TestTeam t({.ranks = 2, .workers_per_rank = 1});
  const Outcome o = launch_apart(
      t.team,
      [&](int rank) {
        t.flags[rank] = getpid();
        for (;;) std::this_thread::sleep_for(10s);
        return 0;
      },
      [&](pid_t) {
        wait_until(t.flags[0], 1);
        wait_until(t.flags[1], 1);
        kill(t.flags[1], SIGKILL);
      });
  CHECK(o.code == 6);
  CHECK(o.took < 1s);
  CHECK(o.text.find("rank 1 (pid") != std::string::npos);
  CHECK(o.text.find("while starting") != std::string::npos);
}

TEST_CASE("a rank's own error is printed by that rank, once, and its code is the run's") {
  TestTeam t({.ranks = 3, .workers_per_rank = 2});
  const Outcome o = launch_apart(t.team, [&](int rank) {
    run_workers(t.team, rank, [&](int worker) {
      t.team.barrier(worker);
      if (worker == 3) fail(Fault::data, "the labels are wrong");
      t.team.barrier(worker);
    });
    return 0;
  });
  CHECK(o.code == 4);
  CHECK(o.text == "dptrain: rank 1: the labels are wrong\n");
}

TEST_CASE("when all ranks fail, one speaks") {
  TestTeam t({.ranks = 4, .workers_per_rank = 1});
  const Outcome o = launch_apart(t.team, [&](int) -> int { fail(Fault::data, "no such file"); });
  CHECK(o.code == 4);
  CHECK(std::count(o.text.begin(), o.text.end(), '\n') == 1);
}

TEST_CASE("a code that a rank returns, or exits with, is the run's") {
  TestTeam returned({.ranks = 2, .workers_per_rank = 1});
  Outcome o = launch_apart(returned.team, [&](int rank) {
    if (rank == 1) return 7;
    returned.team.barrier(rank);
    return 0;
  });
  CHECK(o.code == 7);
  CHECK(o.text.empty());

  TestTeam exited({.ranks = 2, .workers_per_rank = 1});
  o = launch_apart(exited.team, [&](int rank) {
    if (rank == 1) _exit(9);
    exited.team.barrier(rank);
    return 0;
  });
  CHECK(o.code == 9);
  CHECK(o.text.find("rank 1 (pid") != std::string::npos);
  CHECK(o.text.find("exited with code 9") != std::string::npos);
}

TEST_CASE("a rank that fails after the stop that all agreed on is named") {
  TestTeam t({.ranks = 2, .workers_per_rank = 1});
  const Outcome o = launch_apart(
      t.team,
      [&](int rank) {
        const int code = train(t, rank);
        if (rank == 1) _exit(9);
        return code;
      },
      [&](pid_t launcher) {
        wait_until(t.flags[0], 5);
        kill(launcher, SIGTERM);
      });
  CHECK(o.code == 9);
  CHECK_MESSAGE(o.text.find(" exited with code 9 at epoch 3, step ") != std::string::npos, o.text);
}

TEST_CASE("workers of the only rank that do not come are named") {
  TestTeam t({.ranks = 1, .workers_per_rank = 2}, {.stuck_s = 0.05});
  const Outcome o = launch_apart(t.team, [&](int rank) {
    run_workers(t.team, rank, [&](int worker) {
      if (worker == 0) t.team.barrier(worker);
    });
    return 0;
  });
  CHECK(o.code == 6);
  CHECK_MESSAGE(o.text.starts_with("dptrain: worker 1 of rank 0 (pid "), o.text);
  CHECK_MESSAGE(o.text.ends_with(" while starting did not reach the barrier within 0.05 s\n"),
                o.text);
  CHECK(std::count(o.text.begin(), o.text.end(), '\n') == 1);
}

TEST_CASE("a rank that is stopped is found while the others wait for it, even to save") {
  for (const bool saving : {false, true}) {
    TestTeam t({.ranks = 2, .workers_per_rank = 1}, {.timeout_s = 0.3});
    const Outcome o = launch_apart(t.team, [&](int rank) {
      if (rank == 1) {
        if (saving) t.team.set_progress(rank, {.epoch = 3, .step = 9, .phase = Phase::saving});
        raise(SIGSTOP);
      }
      saving ? t.team.barrier_without_limit(rank) : t.team.barrier(rank);
      return 0;
    });
    CHECK(o.code == 6);
    CAPTURE(o.text);
    CHECK(o.text.find("dptrain: rank 1 (pid ") == 0);
    CHECK(o.text.find(fmt::format(") has not responded for 0.3 s, {}: its process is suspended",
                                  saving ? "at epoch 3, step 9 while saving" : "while starting")) !=
          std::string::npos);
    CHECK(std::count(o.text.begin(), o.text.end(), '\n') == 1);
  }
}

TEST_CASE("a run whose ranks respond but make no step says once where they are, and goes on") {
  TestTeam t({.ranks = 2, .workers_per_rank = 1}, {.timeout_s = 0.3, .notice_s = 0.3});
  const Outcome o = launch_apart(t.team, [&](int rank) {
    t.team.set_progress(rank, {.epoch = 3, .step = 9, .phase = Phase::training});
    if (rank == 1) {
      t.team.set_progress(rank, {.epoch = 3, .step = 9, .phase = Phase::saving});
      std::this_thread::sleep_for(900ms);
    }
    t.team.barrier_without_limit(rank);
    return 0;
  });
  CHECK(o.code == 0);
  CAPTURE(o.text);
  CHECK(o.text.starts_with("dptrain: no rank has begun a step for 0.3 s: rank 0 (pid "));
  CHECK(o.text.find(") at epoch 3, step 9, rank 1 (pid ") != std::string::npos);
  CHECK(o.text.find(") at epoch 3, step 9 while saving, all processes respond, so the run "
                    "continues;") != std::string::npos);
  CHECK(std::count(o.text.begin(), o.text.end(), '\n') == 1);
}

TEST_CASE("a run that is stopped as a whole goes on when it is continued") {
  TestTeam t({.ranks = 2, .workers_per_rank = 1}, {.timeout_s = 0.3});
  const Outcome o = launch_apart(
      t.team, [&](int rank) { return train(t, rank); },
      [&](pid_t launcher) {
        wait_until(t.flags[0], 5);
        for (const pid_t pid : {launcher, t.flags[1].load(), t.flags[2].load()}) kill(pid, SIGSTOP);
        std::this_thread::sleep_for(700ms);
        const int steps = t.flags[0];
        for (const pid_t pid : {launcher, t.flags[1].load(), t.flags[2].load()}) kill(pid, SIGCONT);
        wait_until(t.flags[0], steps + 5);
        std::this_thread::sleep_for(500ms);
        kill(launcher, SIGTERM);
        kill(t.flags[2], SIGTERM);
      });
  CHECK(o.code == 143);
  CHECK(o.text.empty());
}

TEST_CASE("signals end a run after a step that all ranks agree on") {
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1})
    for (const int to : {0, 1, 2}) {  // the launcher, a rank, everybody as Ctrl-C does
      TestTeam t({.ranks = 2, .workers_per_rank = 2});
      const Outcome o = launch_apart(
          t.team, [&](int rank) { return train(t, rank); },
          [&](pid_t launcher) {
            wait_until(t.flags[0], 5);
            if (to != 1) kill(launcher, signal);
            if (to == 2) kill(t.flags[1], signal);
            if (to != 0) kill(t.flags[2], signal);
          });
      CHECK(o.code == exit_code_of(signal));
      CHECK(o.text.empty());
      CHECK(t.team.progress(0).step == t.team.progress(1).step);
    }
}

TEST_CASE("a second signal ends everything at once, but not one that only echoes the first") {
  TestTeam t({.ranks = 2, .workers_per_rank = 1});
  const Outcome o = launch_apart(
      t.team,
      [&](int rank) {
        t.flags[rank] = 1;
        std::this_thread::sleep_for(20s);
        return 0;
      },
      [&](pid_t launcher) {
        wait_until(t.flags[0], 1);
        wait_until(t.flags[1], 1);
        kill(launcher, SIGTERM);
        std::this_thread::sleep_for(20ms);
        kill(launcher, SIGTERM);
        std::this_thread::sleep_for(50ms);
        CHECK(kill(launcher, 0) == 0);
        CHECK(waitpid(launcher, nullptr, WNOHANG) == 0);
        std::this_thread::sleep_for(200ms);
        kill(launcher, SIGINT);
      });
  CHECK(o.code == 130);
  CHECK(o.took < 1s);
}

TEST_CASE("a rank killed while it breaks the run up does not make it succeed") {
  TestTeam t({.ranks = 2, .workers_per_rank = 1});
  const Outcome o = launch_apart(t.team, [&](int rank) {
    if (rank == 1) {
      t.flags[0] = kill_within_break_up(t.team, rank, 6) ? 1 : 2;
      raise(SIGKILL);
    }
    for (;;) std::this_thread::sleep_for(10s);
    return 0;
  });
  if (skip_without(t.flags[0] == 1, "ptrace")) return;
  CHECK(o.code == 6);
}

TEST_CASE("a launcher that is killed leaves no process behind") {
  for (int round = 0; round < 6; ++round) {
    TestTeam t({.ranks = 3, .workers_per_rank = 1}, {.timeout_s = 1});
    const Outcome o = launch_apart(
        t.team,
        [&](int rank) {
          alarm(20);
          // As on a system without it: the heartbeat notices.
          if (round == 5) prctl(PR_SET_PDEATHSIG, 0);
          t.flags[rank] = getpid();
          for (;;) std::this_thread::sleep_for(10s);
          return 0;
        },
        [&](pid_t launcher) {
          if (round > 0)
            for (int r = 0; r < 3; ++r) wait_until(t.flags[r], 1);
          kill(launcher, SIGKILL);
        });
    CHECK(o.code == 1000 + SIGKILL);
    CHECK(o.took < 1s);  // the end of file: nobody has the pipe any more
  }
}

TEST_CASE("ranks are not started from a process that has threads") {
  TestTeam t({.ranks = 2, .workers_per_rank = 1});
  std::atomic<bool> done = false;
  std::jthread other([&] {
    while (!done) std::this_thread::sleep_for(1ms);
  });
  CHECK_THROWS_AS(launch(t.team, [](int) { return 0; }), Error);
  done = true;
}

}  // namespace
}  // namespace dpt

#endif
