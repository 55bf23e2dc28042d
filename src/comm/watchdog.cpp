#include "comm/watchdog.h"

#include <chrono>

#include <unistd.h>

#include "base/stderr.h"
#include "comm/futex.h"
#include "comm/heartbeat.h"

namespace dpt {

Watchdog::Watchdog(Team team, int rank, double limit_s)
    : team_(team), rank_(rank), limit_s_(limit_s) {
  thread_ = start_without_signals([this] { run(); });
}

Watchdog::~Watchdog() {
  stop_.store(1);
  futex::wake_all(stop_);
  thread_.join();
}

void Watchdog::run() noexcept {
  using Clock = std::chrono::steady_clock;
  constexpr double kPeriod = 0.25;
  Clock::time_point whole = Clock::now();  // when the team was last seen unbroken
  for (; stop_.load() == 0; futex::sleep_while(stop_, 0, kPeriod))
    if (!team_.broken())
      whole = Clock::now();
    else if (Clock::now() - whole > std::chrono::duration<double>(limit_s_))
      end_process();
}

void Watchdog::end_process() noexcept {
  if (team_.claim_message(rank_)) {
    const bool own = team_.broken_by() == rank_;
    print_stderr("dptrain: {}{}\n", own ? team_.prefix_of(rank_) : "", team_.reason());
  }
  _exit(team_.broken_by() == rank_ ? team_.exit_code() : static_cast<int>(Fault::rank));
}

}  // namespace dpt
