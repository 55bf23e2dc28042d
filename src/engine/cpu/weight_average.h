// Averages the weights and optimizer states of replicas that own theirs.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/cpu/worker.h"

namespace dpt {

// Thread: the worker's. REQUIRES: the worker outlives it.
class WeightAverage {
 public:
  // shared: the buffers of the first replica.
  WeightAverage(const CpuWorker& worker, const Buffers& shared);

  // Writes the mean over replicas to the weights, running statistics and states of every replica,
  // in this worker's part of them (session/own_weights.h). The mean is the sum in the fixed tree
  // (comm/tree.h) divided by the number of replicas, so its bits do not depend on the number of
  // workers. REQUIRES: barriers of all workers before and after.
  void run();

 private:
  // rounds: to the half in which pure precision keeps weights.
  void average(const std::vector<float*>& replicas, UpdateRange range, bool rounds);

  const CpuWorker& worker_;
  std::vector<std::vector<float*>> averaged_;  // [1 + states][replicas]: weights, then each state
  UpdateRange parameters_;                     // this worker's, see session/own_weights.h
  std::vector<UpdateRange> buffers_, copied_;
  std::vector<float> tile_;  // [replicas, kTile]
  std::vector<float*> parts_;
};

}  // namespace dpt
