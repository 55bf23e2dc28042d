// Sessions whose replicas own their weights (Topology::replicas_own_weights): what they cannot
// have, and who averages what.
#pragma once

#include <vector>

#include "session/compiled_model.h"
#include "session/devices.h"
#include "session/run_precision.h"
#include "session/run_settings.h"
#include "session/update_partition.h"

namespace dpt {

// Reports settings that need sums over all replicas in every step, or equal replicas between two
// averages.
void check_own_weights(const RunSettings& settings, const Devices& devices,
                       const RunPrecision& precision, Diagnostics& d);

// What a worker averages: its part of the parameters, and of each f32 buffer such as running
// statistics. Elements of the weight buffer, in ascending order. Frozen parameters are equal
// already.
UpdateRange averaged_parameters(const CompiledModel& model, const Topology& topology, int worker);
std::vector<UpdateRange> averaged_buffers(const CompiledModel& model, const Topology& topology,
                                          int worker);
// Buffers that are not f32, such as the number of batches. Those of the first replica replace the
// others', copied by the first worker.
std::vector<UpdateRange> copied_buffers(const CompiledModel& model, int worker);

}  // namespace dpt
