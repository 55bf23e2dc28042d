#include "comm/watchdog.h"

#include <chrono>
#include <exception>

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

// Prints in another thread and waits at most half a second for it: the pipe may be full and have no
// reader, or the disk may hang.
void Watchdog::print_reason() noexcept {
  constexpr double kPrintS = 0.5;
  static std::atomic<uint32_t> printed = 0;
  try {
    start_without_signals([team = team_, own = team_.broken_by() == rank_, rank = rank_] {
      print_stderr("dptrain: {}{}\n", own ? team.prefix_of(rank) : "", team.reason());
      printed.store(1);
      futex::wake_all(printed);
    }).detach();
    if (printed.load() == 0) futex::sleep_while(printed, 0, kPrintS);
  } catch (const std::exception&) {  // no thread: the run ends without its reason
  }
}

void Watchdog::end_process() noexcept {
  if (team_.claim_message(rank_)) print_reason();
  _exit(team_.broken_by() == rank_ ? team_.exit_code() : static_cast<int>(Fault::rank));
}

}  // namespace dpt
