// Which elements of the flat buffers belong to whom, and where the memory that the workers of a
// machine share lies. Made once for a session: workers refer to it.
#pragma once

#include <optional>
#include <vector>

#include "session/arenas.h"
#include "session/buffers.h"
#include "session/gpu_share.h"
#include "session/host_layout.h"
#include "session/measure_layout.h"
#include "session/update_partition.h"

namespace dpt {

// Which elements each host, GPU and worker owns; the plan depends on it.
struct ElementShares {
  std::optional<HostLayout> hosts;  // empty unless Devices::cpus_span_hosts()
  std::vector<GpuShare> gpus;       // of each device of a replica; empty on CPUs
  // The pieces that each worker of all hosts updates: see partition_update().
  std::vector<std::vector<UpdatePiece>> workers;
};

struct MemoryLayout {
  ArenaLayout arenas;
  MeasureLayout measures;
  Buffers::Sizes buffers;  // that the workers of a machine share
};

// REQUIRES: the members that Session declares before its `shares` have been made.
ElementShares make_shares(const Session& session);
// REQUIRES: likewise before its `layout`. Throws Error{spec} if sizes overflow.
MemoryLayout make_memory_layout(const Session& session);

}  // namespace dpt
