// Sums what the shards found in an evaluation.
#pragma once

#include <cstdint>
#include <functional>

#include "engine/step_executor.h"
#include "session/buffers.h"
#include "session/session.h"

namespace dpt {

// Zeroes what a shard found: before the evaluation, by the shard's owner.
void clear_evaluation(const Buffers& buffers, int shard);

// The numbers of the whole set, from Buffers::evaluation and Buffers::metrics of all shards. Call
// it on every worker, between two barriers; the result is the same on each.
Evaluation sum_evaluation(const Session& session, const Buffers& buffers);

// Adds what a shard found in so many samples. found.weight counts only if the targets determine the
// divisor.
void add_evaluation(const CompiledModel& model, ShardResult& to, const ShardResult& found,
                    int64_t samples);

// The end of an evaluation, on every worker: waits for all shards, sums them, and waits until all
// workers have read them, since the next evaluation writes them again. barrier: of all workers.
Evaluation end_evaluation(const Session& session, const Buffers& buffers,
                          const std::function<void()>& barrier);

}  // namespace dpt
