#include "base/run_delay.h"

#include <algorithm>
#include <fstream>
#include <utility>

namespace dpt {

using Clock = std::chrono::steady_clock;

// /proc/thread-self/schedstat: nanoseconds on a core, nanoseconds waiting for one, time slices.
std::optional<double> run_delay_s() {
  std::ifstream in("/proc/thread-self/schedstat");
  double on_core = 0, waited = 0;
  if (!(in >> on_core >> waited)) return {};
  return 1e-9 * waited;
}

RunDelay::RunDelay() : at_(Clock::now()), waited_s_(run_delay_s().value_or(0)) {}

double RunDelay::share() {
  const auto now = Clock::now();
  const double waited = run_delay_s().value_or(0);
  const double seconds = std::chrono::duration<double>(now - std::exchange(at_, now)).count();
  const double delay = waited - std::exchange(waited_s_, waited);
  return seconds > 0 ? std::clamp(delay / seconds, 0.0, 1.0) : 0;
}

}  // namespace dpt
