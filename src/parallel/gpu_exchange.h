// How replicas on GPUs share gradients and weights, as steps of a plan.
#pragma once

#include "parallel/rewrites.h"

namespace dpt {

// Gradients are summed over replicas: by NCCL in buckets, each as soon as the last micro-batch's
// backward part has made it, while that part goes on; or by the hosts, after the backward part.
// With PlanTarget::shards_states each replica receives the sums of its pieces, updates these, and
// gathers the weights of the others. In a replica of several GPUs, the one with the last stage
// decides whether the gradients are used. On several machines the ranks of each pass a barrier
// before a launch, which may have many steps; in a step only GPUs wait for each other, by NCCL.
Plan exchange_between_gpus(Plan plan, const PlanTarget& target);

}  // namespace dpt
