// How several hosts (machines) share a step's gradients and weights, as steps of a plan.
#pragma once

#include <cstddef>

#include "graph/program/plan.h"

namespace dpt {

// The update of a plan for one worker becomes that of several hosts. The workers of a host sum its
// shards; the leaders of all hosts exchange these parts, bucket by bucket; each host completes the
// sums of the elements that it owns, updates these weights, and sends them to all others. While a
// bucket is on its way, workers sum the next one and update the one before. No host updates weights
// before it has the results of all shards, nor begins the next step before it has all weights.
//
// REQUIRES: all gradients are stored; `plan` has its barriers before the update; buckets > 0.
Plan exchange_between_hosts(Plan plan, size_t buckets);

}  // namespace dpt
