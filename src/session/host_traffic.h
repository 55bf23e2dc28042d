// The messages that hosts (machines) exchange in a training step of a session, counted for each
// instruction of its plan. Arithmetic only: engine/cpu/host_exchange.h sends them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph/program/plan.h"
#include "session/host_layout.h"
#include "session/session.h"

namespace dpt {

// Bytes of results: each host sends its decisions, and for each of its shards what that brought.
inline constexpr size_t kHostResultBytes = 16, kShardResultBytes = 16;

class HostTrafficCounter {
 public:
  // REQUIRES: Devices::cpus_span_hosts(); the session outlives it.
  explicit HostTrafficCounter(const Session& session);

  // The exchange that an instruction of leaders begins; nothing if it waits for one.
  HostTraffic of(const PlanStep& step, int host) const;
  // The most of any host, for each number: hosts may have different numbers of shards.
  HostTraffic most(const PlanStep& step) const;
  // All exchanges at the sync points of one micro-batch: `sync_batch_norm` sums over all hosts.
  HostTraffic most_at_sync_points() const;

  const ElementOwners& owners() const { return layout_.owners(); }

 private:
  // Each host sends this many bytes to all others.
  HostTraffic of_frames(const std::vector<uint64_t>& bytes, int host) const;
  template <class Of>
  HostTraffic most_of(Of of) const;

  const Session& session_;
  const HostLayout& layout_;
  std::vector<uint64_t> results_, squares_, sums_;  // [hosts] bytes of a frame
};

}  // namespace dpt
