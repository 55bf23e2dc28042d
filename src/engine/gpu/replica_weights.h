// The weights of the replicas, which are equal on all GPUs: what the host's buffers get of them,
// and what replicas get of the first one.
#pragma once

#include "engine/gpu/update.h"
#include "engine/gpu/worker.h"

namespace dpt {

// Each call is made on all workers and waits for the GPUs. Thread: the worker's. REQUIRES: all
// references outlive it.
class ReplicaWeights {
 public:
  ReplicaWeights(GpuWorker& worker, GpuUpdate& update) : worker_(worker), update_(update) {}

  // Copies the weights of each host's first replica to that host's buffers. Throws Error{device} on
  // a replica, or a host, whose weights differ: then a sum over GPUs has failed.
  void gather();
  // Copies the first replica's running statistics to all GPUs, since PyTorch evaluates with those.
  void share_running_statistics();

 private:
  void check_equal();

  GpuWorker& worker_;
  GpuUpdate& update_;
};

}  // namespace dpt
