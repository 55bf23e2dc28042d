// How several hosts (machines) share a step's gradients and weights, as steps of a plan.
#pragma once

#include <cstddef>
#include <vector>

#include "graph/program/plan.h"

namespace dpt {

// The update of a plan for one worker becomes that of several hosts. The workers of a host sum its
// shards; the leaders of all hosts exchange these parts, bucket by bucket; each host completes the
// sums of the elements that it owns, updates these weights, and sends them to all others. While a
// bucket is on its way, workers sum the next one and update the one before. No host updates weights
// before it has the results of all shards, nor begins the next step before it has all weights.
//
// made_after: of the first buckets, which are summed and sent during the backward part of the last
// micro-batch: the instruction that completes each of them and all before it, in ascending order.
// Empty: all buckets are sent after the backward part. The parts of all these buckets and of one
// more wait in memory until the update.
//
// REQUIRES: all gradients are stored; `plan` has its barriers before the update; buckets > 0 and
// buckets > made_after.size(); with `made_after`, there is one stage.
Plan exchange_between_hosts(Plan plan, size_t buckets, const std::vector<size_t>& made_after = {});

}  // namespace dpt
