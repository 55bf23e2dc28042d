// The monotonic clock used for reports and timeouts. No computed result depends on it.
#pragma once

#include <chrono>

namespace dpt {

// Seconds since an arbitrary fixed point in time. Never goes backwards; all processes of a machine
// share the same origin.
inline double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace dpt
