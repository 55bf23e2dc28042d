// dp whose loss is computed on one GPU, `output_device`: what it reads of the replicas' forward
// parts is copied there, the loss of each replica's rows is computed, and what backward parts read
// of it is copied back. The numbers are those of `loss: distributed`, since a loss divides by the
// global batch.
//
// Copies go from one GPU's memory to another's. Between those and the kernels of the other GPU its
// host waits and all meet, so a step is not captured.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "backend/cuda/context.h"
#include "train/device_binding.h"
#include "train/device_team.h"
#include "train/session.h"

namespace dpt {

class DeviceGather {
 public:
  // All workers; waits for the others. memory: of this GPU's programs. REQUIRES: dp with the loss
  // on one of several devices; all references outlive it.
  DeviceGather(const Session& session, cuda::DeviceContext& context, DeviceTeam& gpus,
               const DeviceBinding::Memory& memory);

  bool here() const;  // the loss is computed on this GPU

  // Each enqueues. b: this GPU's program, of its own rows.
  void gather(const DeviceBinding& b);   // copies there
  void scatter(const DeviceBinding& b);  // and back
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

  const Session& session_;
  cuda::DeviceContext& context_;
  DeviceTeam& gpus_;
  std::map<const Program*, Crossing> crossings_;
  cuda::Memory room_;                                 // for each shard, where the loss is computed
  std::vector<std::unique_ptr<DeviceBinding>> loss_;  // [shard * programs + program]
};

}  // namespace dpt
