// The memory that a session's buffers and the devices of a replica take.
#pragma once

#include <string>
#include <vector>

#include "session/buffers.h"
#include "session/session.h"

namespace dpt {

// The sizes of the buffers that the workers of one machine share.
Buffers::Sizes buffer_sizes(const Session& session);

// What one device of a replica stores and sends. Bytes.
struct DeviceUse {
  std::vector<int> stages;
  // Gradients and activations are those of the replica's own shards; weights and states are there
  // once for all replicas of a machine.
  double weights = 0, gradients = 0, states = 0, activations = 0;
  double sent = 0;  // activations and gradients copied to other devices of the replica in a step
  double total() const { return weights + gradients + states + activations; }
};
std::vector<DeviceUse> device_uses(const Session& session);  // [devices of a replica]

// Why a device needs more than `memory_limit`, and what to do; empty if all devices fit, or without
// a limit.
std::string beyond_limit(const Session& session);

}  // namespace dpt
