// LinkActivity: state that a leader's link to other hosts shares with its control channel.
#pragma once

#include <atomic>
#include <cstdint>

namespace dpt {

// Thread: any.
struct LinkActivity {
  // The link writes these, and the control channel sends them to the other hosts.

  // The host for whose message the leader waits, while its host has nothing else to do; -1: it does
  // not wait.
  std::atomic<int> waits_for = -1;
  // Changes whenever data has been sent or received.
  std::atomic<uint64_t> moved = 0;

  // The control channel sets it when the run ends early. A call of the link that waits checks it at
  // least every 0.1 s, and then throws as after Link::abort(). MPI's calls that connect cannot.
  std::atomic<bool> ended = false;
};

}  // namespace dpt
