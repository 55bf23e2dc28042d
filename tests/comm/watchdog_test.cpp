#include "comm/watchdog.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comm/shared_memory.h"

// The thread sanitizer does not follow processes.
#if !defined(__SANITIZE_THREAD__)

namespace dpt {
namespace {

using namespace std::chrono_literals;

// The exit code of a rank that never ends, of a team that `act` does something to, and its stderr,
// which is a pipe that is read meanwhile if `reads`.
template <class Act>
int code_of_hanging(int rank, Act act, std::string* said = nullptr, bool reads = true) {
  const TeamShape shape{.ranks = 2, .workers_per_rank = 1};
  const SharedMemory memory = SharedMemory::create(Team::bytes(shape));
  const Team team = Team::create(memory.span(), shape);
  std::fflush(nullptr);
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(20);
    dup2(ends[1], STDERR_FILENO);
    const Watchdog watchdog(team, rank, 0.05);
    act(team);
    for (;;) std::this_thread::sleep_for(1s);
  }
  close(ends[1]);
  std::string text;
  for (char c = 0; reads && read(ends[0], &c, 1) == 1;) text += c;
  if (said) *said = text;
  int status = 0;
  waitpid(pid, &status, 0);
  close(ends[0]);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST_CASE("a process that hangs after its run has failed ends, with the code of who is to blame") {
  const auto breaks = [](Team team) { team.break_up(1, "it failed", 4, true); };
  CHECK(code_of_hanging(0, breaks) == static_cast<int>(Fault::rank));
  CHECK(code_of_hanging(1, breaks) == 4);
}

TEST_CASE("a process that hangs says what ended the run if nobody has") {
  std::string said;
  const auto breaks = [](Team team) { team.break_up(1, "it failed", 4); };
  code_of_hanging(0, breaks, &said);
  CHECK(said == "dptrain: it failed\n");
  code_of_hanging(1, breaks, &said);
  CHECK(said == "dptrain: rank 1: it failed\n");
  const auto said_before = [](Team team) {
    team.break_up(1, "it failed", 4);
    team.claim_message();
  };
  code_of_hanging(0, said_before, &said);
  CHECK(said.empty());
}

TEST_CASE("a process whose messages nobody reads ends all the same") {
  const auto breaks = [](Team team) {
    fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK);
    const std::string page(4096, ' ');
    while (write(STDERR_FILENO, page.data(), page.size()) > 0) {
    }
    fcntl(STDERR_FILENO, F_SETFL, 0);
    team.break_up(1, "it failed", 4);
  };
  CHECK(code_of_hanging(0, breaks, nullptr, false) == static_cast<int>(Fault::rank));
}

TEST_CASE("a process of a run that has not failed is left alone") {
  CHECK(code_of_hanging(0, [](Team) {
          std::this_thread::sleep_for(600ms);
          _exit(77);
        }) == 77);
}

}  // namespace
}  // namespace dpt

#endif
