#include "base/signals.h"

#include <chrono>
#include <csignal>
#include <thread>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dpt {
namespace {

using namespace std::chrono_literals;

// The code with which a child ends that runs `body`; 1000 + signal when it was killed.
template <class Body>
int code_of(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    for (const int signal : {SIGHUP, SIGXCPU}) std::signal(signal, SIG_DFL);  // tests under nohup
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

TEST_CASE("the first signal is written down, and the word keeps it") {
  for (const int signal : {SIGINT, SIGTERM})
    CHECK(code_of([&] {
            std::atomic<int> word = 0;
            const StopSignals stop(word);
            if (word != 0) return 99;
            raise(signal);
            raise(SIGTERM);  // within 200 ms: the same wish
            return word.load();
          }) == signal);
}

TEST_CASE("a second signal ends the process with 128 + its number") {
  for (const int signal : {SIGINT, SIGTERM})
    CHECK(code_of([&] {
            std::atomic<int> word = 0;
            const StopSignals stop(word);
            raise(SIGTERM);
            std::this_thread::sleep_for(230ms);
            raise(signal);
            return 99;
          }) == 128 + signal);
}

TEST_CASE("a warning asks for an end, as often as it comes, and takes no patience away") {
  for (const int signal : {SIGUSR1, SIGUSR2, SIGHUP, SIGXCPU})
    CHECK(code_of([&] {
            std::atomic<int> word = 0;
            const StopSignals stop(word);
            raise(signal);
            std::this_thread::sleep_for(230ms);
            raise(signal);
            raise(SIGTERM);  // the time limit, while a checkpoint is written
            return word.load();
          }) == signal);
  CHECK(exit_code_of(SIGUSR2) == 75);
  CHECK(exit_code_of(SIGTERM) == 143);
  CHECK(exit_code_of(SIGHUP) == 129);
  CHECK(exit_code_of(SIGXCPU) == 152);
}

TEST_CASE("what nohup ignores stays ignored") {
  for (const int signal : {SIGHUP, SIGXCPU})
    CHECK(code_of([&] {
            std::signal(signal, SIG_IGN);
            const StartupSignals startup;
            raise(signal);
            std::atomic<int> word = 0;
            const StopSignals stop(word);
            raise(signal);
            return word.load();
          }) == 0);
}

TEST_CASE("before a run can stop after a step, a signal ends it at once with the same code") {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGXCPU, SIGUSR1, SIGUSR2}) {
    CHECK(code_of([&] {
            const StartupSignals startup;
            raise(signal);
            return 99;
          }) == exit_code_of(signal));
    CHECK(code_of([&] {
            const StartupSignals startup;
            std::atomic<int> word = 0;
            {
              const StopSignals stop(word);
              raise(signal);
            }
            if (word != signal) return 99;
            raise(signal);
            return 98;
          }) == exit_code_of(signal));
  }
}

TEST_CASE("a reader of our output that goes away asks for an end, as often as it is noticed") {
  CHECK(code_of([] {
          std::atomic<int> word = 0;
          const StopSignals stop(word);
          if (stop_asked()) return 99;
          raise(SIGPIPE);
          std::this_thread::sleep_for(230ms);
          raise(SIGPIPE);
          return stop_asked() ? word.load() : 98;
        }) == SIGPIPE);
  CHECK(exit_code_of(SIGPIPE) == 141);
}

TEST_CASE("afterwards signals do what they did before") {
  CHECK(code_of([] {
          std::signal(SIGTERM, SIG_DFL);
          std::atomic<int> word = 0;
          { const StopSignals stop(word); }
          raise(SIGTERM);
          return 99;
        }) == 1000 + SIGTERM);
}

}  // namespace
}  // namespace dpt
