// dp whose loss is computed on one GPU, `output_device`: what it reads of the replicas' forward
// parts is copied there, the loss of each replica's rows is computed, and what backward parts read
// of it is copied back. The numbers are those of `loss: distributed`, since a loss divides by the
// global batch.
//
// NCCL sends and receives what crosses, within a step that is captured. The loss's GPU takes
// replicas in their order, and the sums of all come before or behind: so no two calls wait for each
// other in a circle. Where there is no NCCL since replicas share a GPU, or CPUs sum, copies go from
// one GPU's memory to another's; between those and the kernels of the other GPU its host waits and
// all meet, so that no step is captured.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "backend/cuda/interface/context.h"
#include "engine/gpu/binding.h"
#include "engine/gpu/exchange.h"
#include "engine/gpu/team.h"
#include "session/session.h"

namespace dpt {

class DeviceGather {
 public:
  using Micro = std::vector<ShardRows>;

  // All workers; waits for the others. memory: of this GPU's programs. wait: the host does, for all
  // that the context's stream was told. REQUIRES: dp with the loss on one of several devices; all
  // references outlive it.
  DeviceGather(const Session& session, cuda::DeviceContext& context, DeviceTeam& gpus,
               DeviceExchange& exchange, const DeviceBinding::Memory& memory,
               std::function<void()> wait);

  bool here() const;  // the loss is computed on this GPU

  // All workers. Each enqueues. b: this GPU's program, of its own rows; null: it has none.
  void gather(const Micro& micro, const DeviceBinding* b);   // brings what the loss reads there
  void scatter(const Micro& micro, const DeviceBinding* b);  // and back what is read of it
  // Where the loss is computed: that of another replica's rows; gives its place.
  const std::byte* loss_of(int shard, int64_t rows);

  static size_t bytes(const Session& session);  // that it takes where the loss is computed

 private:
  // Bytes of the activations that cross, and all that the loss touches.
  struct Crossing {
    std::vector<ValueId> to_loss, from_loss;
    size_t begin = 0, end = 0;
  };
  static Crossing crossing_of(const Program& program);
  const Crossing& crossing(const DeviceBinding& b) const { return crossings_.at(&b.program()); }
  DeviceBinding& of(int shard,
                    int64_t rows) const;  // another replica's, where the loss is computed
  void pass(const Micro& micro, const DeviceBinding* own, bool there);
  void copy(const DeviceBinding& own, bool there);
  void take_turns();

  const Session& session_;
  cuda::DeviceContext& context_;
  DeviceTeam& gpus_;
  DeviceExchange& exchange_;
  std::function<void()> wait_;
  std::map<const Program*, Crossing> crossings_;
  std::vector<DeviceExchange::Transfer> transfers_;   // of a pass(), which allocates nothing anew
  cuda::Memory room_;                                 // for each shard, where the loss is computed
  std::vector<std::unique_ptr<DeviceBinding>> loss_;  // [shard * programs + program]
};

}  // namespace dpt
