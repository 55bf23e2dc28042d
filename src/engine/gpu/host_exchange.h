// What the leader of a host (machine) with GPUs, its first worker, exchanges with the leaders of
// other hosts before the first step, in evaluations and for checkpoints. In a step nothing goes
// this way: NCCL's communicator has the GPUs of all hosts (engine/gpu/exchange.h).
#pragma once

#include <cstddef>

#include "comm/links/link.h"
#include "engine/host_results.h"
#include "session/buffers.h"
#include "session/gpu_share.h"
#include "session/session.h"

namespace dpt {

// All leaders make the same calls in the same order. The workers of a host write what is sent, and
// read what has arrived, behind barriers (GpuWorker::among_hosts). Thread: the leader's.
// Throws Error{rank} like Link.
class GpuHostExchange {
 public:
  // REQUIRES: all references outlive it; each replica has one GPU.
  GpuHostExchange(const Session& session, const Buffers& buffers, const GpuShare& share,
                  Link& link);

  // Everything that a run starts from, from the first host: weights, running statistics, and to
  // each host the optimizer states that its GPUs keep.
  void send_start();
  // What hosts with CPUs exchange, too.
  HostResults& results() { return results_; }
  // With `shard: optimizer`: the states that other hosts' GPUs keep, to the first host.
  void gather_states();
  // Compares the trained weights of all hosts, which their first GPUs have copied to the buffers.
  // Throws Error{device} on the first host if some differ, which ends the others' run, too: then a
  // sum over GPUs has failed.
  void compare_weights();

  // Bytes that a host sends: of the first host to each other one at the start, and of each other
  // host to the first one for a checkpoint.
  static size_t start_bytes(const Session& session, const GpuShare& share, int host);
  static size_t checkpoint_bytes(const Session& session, const GpuShare& share, int host);

 private:
  void exchange_states(bool to_first);

  const Session& session_;
  const Buffers buffers_;
  const GpuShare& share_;
  Link& link_;
  HostResults results_;
};

}  // namespace dpt
