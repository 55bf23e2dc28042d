// The layout of the memory that all workers of a machine share: the team's header, rank 0's
// decision for ranks started by a launcher, the state of GPU communication, and the buffers.
#pragma once

#include <cstddef>

#include "comm/shared_memory.h"
#include "comm/team.h"
#include "session/session.h"

namespace dpt {

TeamShape team_shape(const Devices& devices);

struct SharedLayout {
  explicit SharedLayout(const Session& session, size_t decision_bytes = 0);
  size_t decision, gpus, buffers, bytes;  // offsets of the parts; bytes: total size

  // Creates the team in the first part of `memory`. REQUIRES: `memory` is zeroed and has `bytes`
  // bytes.
  Team team(const SharedMemory& memory, const Session& session, const TeamSettings& settings) const;
};

}  // namespace dpt
