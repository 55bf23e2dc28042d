#include "comm/heartbeat.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <system_error>
#include <utility>

#include <pthread.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/stderr.h"
#include "comm/futex.h"

namespace dpt {
std::thread start_without_signals(std::function<void()> body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread out(std::move(body));
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return out;
  } catch (const std::system_error& e) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    fail(Fault::rank,
         "cannot start a thread: {}; raise the limit of processes and threads (ulimit -u, or the "
         "container's pids limit)",
         e.code().message());
  }
}

Heartbeat::Heartbeat(Team team, int rank, LauncherProcess launcher_process)
    : team_(team),
      rank_(rank),
      launcher_process_(std::move(launcher_process)),
      peers_(static_cast<size_t>(team.shape().ranks)),
      progress_(peers_.size()) {
  team_.beat(rank_);
  thread_ = start_without_signals([this] { run(); });
}

Heartbeat::~Heartbeat() {
  stop_.store(1);
  futex::wake_all(stop_);
  thread_.join();
  team_.end_heartbeat(rank_);
}

void Heartbeat::run() noexcept {
  constexpr double kLongestPeriod = 1, kFewestBeats = 10;
  const double timeout_s = team_.timeout_s();
  const double period = std::min(timeout_s / kFewestBeats, kLongestPeriod);
  for (; stop_.load() == 0; futex::sleep_while(stop_, 0, period)) {
    team_.beat(rank_);
    check_launcher_process();
    if (team_.broken()) continue;  // the run is ending
    listen(std::ceil(timeout_s / period));
    if (rank_ == 0) notice_stall(std::ceil(team_.notice_s() / period));
  }
}

void Heartbeat::listen(double most_silent_beats) noexcept {
  for (int r = 0; r < team_.shape().ranks; ++r) {
    PeerStatus& other = peers_[static_cast<size_t>(r)];
    const uint32_t count = team_.heartbeat(r);
    if (r == rank_ || count == Team::kEnded || std::exchange(other.count, count) != count)
      other.silent_beats = 0;
    else if (++other.silent_beats > most_silent_beats)
      // With several hosts, the limit is not the spec's alone.
      team_.break_up(r, fmt::format("{} has not responded for {} s, {}: its process is suspended "
                                    "or gets no CPU time{}",
                                    team_.name_of(r), team_.timeout_s(), team_.where_is(r),
                                    team_.host().empty() ? "; if that is intended, raise `timeout` "
                                                           "of the parallel mode"
                                                         : ""));
  }
}

void Heartbeat::notice_stall(double most_beats) noexcept {
  bool moved = false;
  for (int r = 0; r < team_.shape().ranks; ++r) {
    const Progress now = team_.progress(r);
    moved |= std::exchange(progress_[static_cast<size_t>(r)], now) != now;
  }
  if (moved) {
    beats_at_progress_ = 0;
    stall_noticed_ = false;
  }
  if (++beats_at_progress_ < most_beats || stall_noticed_) return;
  constexpr int kMost = 16;
  std::string positions;
  for (int r = 0; r < std::min(team_.shape().ranks, kMost); ++r)
    positions += fmt::format("{} {}, ", team_.name_of(r), team_.where_is(r));
  // A full pipe is tried again with the next beat.
  stall_noticed_ = write_stderr_without_waiting(escape_controls(fmt::format(
      "dptrain: no rank has begun a step for {} s: {}{}all processes respond, so the run "
      "continues; if a file system or a device hangs, end the run\n",
      team_.notice_s(), positions, team_.shape().ranks > kMost ? "..., " : "")));
}

void Heartbeat::check_launcher_process() noexcept {
  if (launcher_process_.pid == 0 || getppid() == launcher_process_.pid) return;
  if (launcher_process_.must_live) _exit(static_cast<int>(Fault::rank));
  team_.break_up(rank_, fmt::format("{} (pid {}), which started {}, has ended {}; to "
                                    "keep ranks running without it, set DPTRAIN_OUTLIVE_LAUNCHER=1",
                                    launcher_process_.name, launcher_process_.pid,
                                    team_.name_of(rank_), team_.where_is(rank_)));
}

}  // namespace dpt
