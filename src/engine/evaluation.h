// Sums what the shards found in an evaluation.
#pragma once

#include "engine/step_executor.h"
#include "session/buffers.h"
#include "session/session.h"

namespace dpt {

// Zeroes what a shard found: before the evaluation, by the shard's owner.
void clear_evaluation(const Buffers& buffers, int shard);

// The numbers of the whole set, from Buffers::evaluation and Buffers::metrics of all shards. Call
// it on every worker, between two barriers; the result is the same on each.
Evaluation sum_evaluation(const Session& session, const Buffers& buffers);

}  // namespace dpt
