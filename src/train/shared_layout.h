// The memory that all workers of a run share: the team's header, rank 0's decision where other
// ranks need it, what GPUs meet with, the buffers.
#pragma once

#include <cstddef>

#include "comm/shared_memory.h"
#include "comm/team.h"
#include "session/session.h"

namespace dpt {

TeamShape team_shape(const Session& session);

struct SharedLayout {
  explicit SharedLayout(const Session& session, size_t decision_bytes = 0);
  size_t decision, gpus, buffers, bytes;  // the offset of each part; bytes: of all of them

  // The team in the first part of `memory`, which is zeroed and holds `bytes`.
  Team team(const SharedMemory& memory, const Session& session, const TeamSettings& settings) const;
};

}  // namespace dpt
