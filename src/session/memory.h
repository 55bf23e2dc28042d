// Memory for each device of a replica.
#pragma once

#include <string>
#include <vector>

#include "session/session.h"

namespace dpt {

// What one device of a replica stores, in bytes.
struct DeviceUse {
  std::vector<int> stages;
  // Gradients and activations are those of the replica's own shards. On CPUs, weights and states
  // exist once for all replicas of a machine, unless replicas own their weights.
  double weights = 0, gradients = 0, states = 0, activations = 0;
  double total() const { return weights + gradients + states + activations; }
};
std::vector<DeviceUse> device_uses(const Session& session);  // one per device of a replica

// Why a device needs more than `memory_limit`, and a remedy. Empty if all devices fit or there is
// no limit.
std::string beyond_limit(const Session& session);

}  // namespace dpt
