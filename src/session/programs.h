// Compiles a session's graph for every size of a shard group that occurs.
#pragma once

#include <vector>

#include "graph/passes/passes.h"
#include "parallel/schedule.h"
#include "session/session.h"

namespace dpt {

// Errors in the spec are reported to `d`. REQUIRES: the parts of the session that stand before the
// model are made.
CompiledModel compile_model(const Session& s, Diagnostics& d);

// The schedule for a model on several devices; empty for one device.
PipelineSchedule schedule_of(const Devices& devices, const SessionBatches& batches,
                             const CompiledModel& model);

// Reports the operators for which the list has no kernel. Only lists for GPUs lack any.
void check_kernels(const Graph& graph, std::span<const KernelType> kernels, Diagnostics& d);

// What each pass of the session's back end changes in the graph of a shard.
std::vector<PassChange> pass_changes(const Session& s);

}  // namespace dpt
