// dp with the loss on one GPU (`output_device`). What the loss reads of the replicas' forward
// passes is copied to that GPU, the loss of each replica's rows is computed there, and what
// backward passes read of it is copied back. Losses divide by the global batch, so the result
// equals that of `loss: distributed`.
//
// By NCCL, values are sent and received within a captured step. The loss's GPU handles the replicas
// in order, and sums over all GPUs come before or after these transfers, so calls cannot deadlock.
// Without NCCL (replicas share a GPU, or CPUs sum), values are copied directly from one GPU's
// memory to the other's. The plan then has the hosts wait for their GPUs and for each other around
// the copies, so steps are not captured.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "backend/cuda/interface/context.h"
#include "engine/gpu/binding.h"
#include "engine/gpu/exchange.h"
#include "engine/gpu/team.h"
#include "session/session.h"

namespace dpt {

class GpuGather {
 public:
  using Micro = std::vector<ShardRows>;

  // Called on all workers; waits for the others. memory: of this GPU's programs. REQUIRES: dp with
  // the loss on one of several devices; all references outlive it.
  GpuGather(const Session& session, cuda::DeviceContext& context, GpuTeam& gpus,
            GpuExchange& exchange, const GpuBinding::BufferPointers& memory);

  bool here() const;  // true on the GPU that computes the loss

  // Called on all workers; each call enqueues. b: this GPU's binding for its own rows; null: no
  // rows.
  void gather(const Micro& micro, const GpuBinding* b);  // copies what the loss reads
  // Copies back what backward passes read of the loss.
  void scatter(const Micro& micro, const GpuBinding* b);
  // On the loss's GPU: enqueues the loss of another replica's rows and returns its address.
  const std::byte* loss_of(int shard, int64_t rows);

  static size_t bytes(const Session& session);  // on the loss's GPU

  // The activations that are copied in each direction, and the byte range of all activations that
  // the loss reads or writes.
  struct Crossing {
    std::vector<ValueId> to_loss, from_loss;
    size_t begin = 0, end = 0;
  };
  static Crossing crossing_of(const Program& program);

 private:
  const Crossing& crossing(const GpuBinding& b) const { return crossings_.at(&b.program()); }
  GpuBinding& of(int shard,
                 int64_t rows) const;  // of another replica's rows, on the loss's GPU
  void pass(const Micro& micro, const GpuBinding* own, bool there);
  void copy(const GpuBinding& own, bool there);

  const Session& session_;
  cuda::DeviceContext& context_;
  GpuTeam& gpus_;
  GpuExchange& exchange_;
  std::map<const Program*, Crossing> crossings_;
  std::vector<GpuExchange::Transfer> transfers_;   // a member so that pass() does not allocate
  cuda::DeviceBuffer loss_buffers_;                // [shards - 1] on the loss's GPU
  std::vector<std::unique_ptr<GpuBinding>> loss_;  // [(shards - 1) * programs]
};

}  // namespace dpt
