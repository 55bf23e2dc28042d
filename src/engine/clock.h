// Time for what a run reports; nothing that is computed depends on it.
#pragma once

#include <chrono>

namespace dpt {

// Seconds since some fixed moment; never goes back.
inline double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace dpt
