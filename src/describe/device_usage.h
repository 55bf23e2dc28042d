// What each device of a replica has to hold and to do.
#pragma once

#include <string>
#include <vector>

#include "parallel/schedule.h"
#include "train/session.h"

namespace dpt {

struct DeviceUse {
  std::vector<int> stages;
  // Bytes. Gradients and activations are those of the replica's own shards; weights and states are
  // there once for all replicas of a machine.
  double weights = 0, gradients = 0, states = 0, activations = 0;
  double sent = 0;  // copied from here to other devices of the replica in a step, activations and
                    // gradients
  double total() const { return weights + gradients + states + activations; }
};
std::vector<DeviceUse> device_uses(const Session& session);

// Where a device's share is more than `memory_limit`: what needs how much, and what to do; empty:
// all fits, or nothing limits it.
std::string beyond_limit(const Session& session);

// When each device does what, if time goes by FLOPs. REQUIRES: the session has a schedule.
Timing predicted_timing(const Session& session);

// The lines that `dptrain plan` prints of devices; empty where a replica has one.
std::string devices_text(const Session& session);

}  // namespace dpt
