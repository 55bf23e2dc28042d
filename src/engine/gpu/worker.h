// One GPU worker: its place in the run, and its GPU. The classes that enqueue its plan share it.
#pragma once

#include <cstdint>
#include <functional>

#include "backend/cuda/interface/context.h"
#include "engine/gpu/binding.h"
#include "engine/gpu/host_exchange.h"
#include "engine/gpu/team.h"
#include "engine/shard_samples.h"
#include "engine/stages_of_device.h"
#include "session/buffers.h"
#include "session/gpu_share.h"
#include "session/session.h"

namespace dpt {

// Thread: the one that made the context's DeviceApi. REQUIRES: all references outlive it.
struct GpuWorker {
  const Session& session;
  const Buffers buffers;
  GpuTeam& gpus;
  const int shard;  // the shard of each batch that this GPU computes, and its replica
  const GpuShare& share;
  cuda::DeviceContext& context;
  const StagesOfDevice stages;
  std::function<void()> wait;        // for everything enqueued on the context's stream
  GpuHostExchange* hosts = nullptr;  // with several hosts, on the leader of each

  cuda::DeviceApi& api() const { return context.api; }
  cuda::Stream& stream() const { return context.stream; }
  const ShardRows& own(const MicroBatch& micro) const { return micro[static_cast<size_t>(shard)]; }
  int64_t row_count(const MicroBatch& micro) const { return own(micro).rows.count(); }
  // The first replica of this host, whose weights the host's buffers get.
  bool first_of_host() const {
    const Topology& topology = session.devices.topology;
    return topology.shards_of_host(topology.host).begin == shard;
  }
  // Call it on all workers. With several hosts: calls f(exchange) on each leader between two
  // barriers of its host.
  template <class F>
  void among_hosts(F f) const {
    if (!gpus.several_hosts()) return;
    gpus.barrier();
    if (hosts) f(*hosts);
    gpus.barrier();
  }
};

// Enqueues what begins a micro-batch: sets the step's state for its rows. b: receives divisor and
// loss scale; null: no rows, or another GPU computes the loss. divides: whether the entry's divisor
// is the loss's; else the targets determine it.
void begin_batch(const GpuWorker& worker, const GpuBinding* b, const StepRows& rows, size_t micro,
                 const cuda::StepEntry* entry, bool divides);

// Throws Error{data} if the GPU saw a class or token out of range.
void check_data(int32_t bad);

}  // namespace dpt
