// Chooses the GPUs of a session, and rejects what training on GPUs does not support. Parts of
// make_devices().
#pragma once

#include "session/devices.h"

namespace dpt {

// Sets the device, and asks CUDA for its GPUs if needed. If `device: auto` becomes a CPU although
// there is a GPU, `note` says why. Throws Error{device} if the device is not available.
void choose_device(Devices& devices, const RunSettings& settings, const SessionQuery& query);

// Assigns a GPU to each worker, and chooses who sums gradients. Errors in the spec are reported to
// `d`. Throws Error{device} if GPUs or NCCL are missing. REQUIRES: the topology is set.
void place_on_gpus(Devices& devices, const Spec& spec, const SessionQuery& query, Diagnostics& d);

}  // namespace dpt
