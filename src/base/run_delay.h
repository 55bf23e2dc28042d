// How long this thread has waited for a core.
#pragma once

#include <chrono>
#include <optional>

namespace dpt {

// Seconds so far in which this thread could run but another one used the core. Empty where the
// kernel does not say. Opens a file, which takes some 20 microseconds.
std::optional<double> run_delay_s();

// Thread: its creator's.
class RunDelay {
 public:
  RunDelay();
  // The share of the time since the last call, or since the construction, in which this thread
  // waited for a core; 0 where the kernel does not say.
  double share();

 private:
  std::chrono::steady_clock::time_point at_;
  double waited_s_;
};

}  // namespace dpt
