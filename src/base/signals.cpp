#include "base/signals.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <tuple>

#include <sysexits.h>
#include <unistd.h>

#include "base/error.h"

namespace dpt {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP, SIGXCPU, SIGUSR1, SIGUSR2, SIGPIPE};
constexpr bool warns(int signal) { return signal == SIGUSR1 || signal == SIGUSR2; }
// The system sends SIGXCPU every second, and a shell may add a SIGHUP to that of the terminal.
constexpr bool only_asks(int signal) {
  return warns(signal) || signal == SIGPIPE || signal == SIGHUP || signal == SIGXCPU;
}
constexpr bool may_be_ignored(int signal) { return signal == SIGHUP || signal == SIGXCPU; }
constexpr int64_t kSameWishMs = 200;

// Global, because a signal handler has no other way to reach them.
// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<std::atomic<int>*> g_word = nullptr;
std::atomic<bool> g_asked = false;    // a signal came; valid after g_word is gone
std::atomic<int64_t> g_first_ms = 0;  // when this process got its first signal; 0: not yet
std::array<struct sigaction, kSignals.size()> g_before;
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

void on_signal(int signal) {
  const int error = errno;
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t now_ms = int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
  int64_t first_ms = 0;
  g_asked = true;
  if (!only_asks(signal) && !g_first_ms.compare_exchange_strong(first_ms, now_ms) &&
      now_ms - first_ms >= kSameWishMs)
    _exit(128 + signal);
  int nothing = 0;
  if (std::atomic<int>* const word = g_word) word->compare_exchange_strong(nothing, signal);
  errno = error;
}

// nohup(1) ignores SIGHUP for a run that is to outlive its terminal.
void handle_all(void (*handler)(int), int flags,
                std::array<struct sigaction, kSignals.size()>& before) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before[i]);
    if (!may_be_ignored(kSignals[i]) || before[i].sa_handler != SIG_IGN)
      sigaction(kSignals[i], &action, nullptr);
  }
}

}  // namespace

int exit_code_of(int signal) {
  if (signal == kTimeLimitReached) return 0;
  return warns(signal) ? EX_TEMPFAIL : 128 + signal;
}

bool stop_asked() noexcept {
  const std::atomic<int>* const word = g_word;
  return word ? word->load() != 0 : g_asked.load();
}

StopSignals::StopSignals(std::atomic<int>& word) {
  require(g_word == nullptr, "stop signals are handled once in a process");
  g_first_ms = 0;
  g_asked = false;
  g_word = &word;
  handle_all(on_signal, SA_RESTART, g_before);
}

StopSignals::~StopSignals() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &g_before[i], nullptr);
  g_word = nullptr;
}

StartupSignals::StartupSignals() {
  static_assert(std::tuple_size_v<decltype(before_)> == kSignals.size());
  handle_all([](int signal) { _exit(exit_code_of(signal)); }, 0, before_);
}

StartupSignals::~StartupSignals() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

}  // namespace dpt
