// What the leaders of hosts (machines) exchange between steps, and at sync points, whether their
// workers are CPUs or GPUs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/links/link.h"
#include "session/buffers.h"
#include "session/session.h"

namespace dpt {

// All leaders make the same calls in the same order; each returns when everything has arrived. The
// workers of a host write what is sent, and read what has arrived, behind barriers.
// Thread: the leader's. Throws Error{rank} like Link.
class HostResults {
 public:
  // REQUIRES: all references outlive it; the link is one between the session's hosts.
  HostResults(const Session& session, const Buffers& buffers, Link& link);

  // Each shard's sums at a sync point: `count` numbers at this offset of Buffers::sums().
  void gather_sums(size_t offset, size_t count);
  // What each shard found in an evaluation, and in a search for non-finite values.
  void gather_evaluation();
  void gather_non_finite();
  // The running statistics, which only the host of the first shard updates.
  void send_statistics();

 private:
  template <class Of>
  void gather(uint32_t tag, size_t record, Of of);

  const Session& session_;
  const Buffers buffers_;
  Link& link_;
  std::vector<std::byte> bytes_;  // [shards][record], as large as the largest so far
};

}  // namespace dpt
