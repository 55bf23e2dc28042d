// LinkActivity: what the leader of a host is doing with its link to other hosts.
#pragma once

#include <atomic>
#include <cstdint>

namespace dpt {

// A link writes it, and the control channel, which tells the other hosts, reads it. Thread: any.
struct LinkActivity {
  // The host for whose message the leader waits, while its host has nothing else to do; -1: it does
  // not wait.
  std::atomic<int> waits_for = -1;
  // Changes whenever data has gone either way.
  std::atomic<uint64_t> moved = 0;
};

}  // namespace dpt
