// The numbers of `dptrain plan` for programs.
#pragma once

#include <string>

#include "session/session.h"

namespace dpt {

// One JSON object: mode, ranks, devices, workers, shards, batch, steps, parameters by tensor, FLOPs
// of a shard group, and memory in bytes.
std::string plan_json(const Session& session);

}  // namespace dpt
