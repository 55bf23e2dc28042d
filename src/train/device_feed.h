// Batches for one GPU: made on the host, copied there.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "backend/cuda/device_api.h"
#include "comm/team.h"
#include "data/batch.h"
#include "train/device_binding.h"
#include "train/step_executor.h"

namespace dpt {

class DeviceFeed {
 public:
  struct Sizes {
    size_t input = 0, target = 0;  // bytes of the largest micro-batch
  };
  DeviceFeed(cuda::DeviceApi& api, cuda::Stream& stream, const Sizes& sizes, size_t micro_batches);

  // Makes the rows of micro-batch `number` in the host's memory. REQUIRES: what was enqueued for it
  // before is done.
  void fill(const Feeder& feeder, const std::vector<ShardRows>& micro, size_t number,
            const StepInput& input, uint64_t seed, Ahead* ahead, const Team& team);

  // Enqueues copies of it to where the program has its input and target.
  void enqueue(const DeviceBinding& b, size_t number);
  void enqueue_target(const DeviceBinding& b, size_t number);

 private:
  std::byte* input(size_t number) { return inputs_.data() + number * sizes_.input; }
  std::byte* target(size_t number) { return targets_.data() + number * sizes_.target; }

  cuda::Stream& stream_;
  Sizes sizes_;
  cuda::Memory inputs_, targets_;  // pinned; each micro-batch at a multiple of sizes_
};

}  // namespace dpt
