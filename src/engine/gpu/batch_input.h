// Batches for one GPU, of one data set. There are two ways: the set lies on the GPU, which gathers
// its rows (resident_input.h), or the host makes batches and copies them while the GPU computes
// (staged_input.h).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "backend/cuda/interface/context.h"
#include "comm/team.h"
#include "data/batch.h"
#include "engine/gpu/binding.h"
#include "engine/step_executor.h"

namespace dpt {

// How the host waits for what a GPU does: alone, or watching others (team.h).
using WaitForGpu = std::function<void(cuda::Event&)>;

class DeviceFeed {
 public:
  virtual ~DeviceFeed() = default;

  // Before an epoch, when nothing of the one before is under way: all rows are of this order.
  virtual void begin(std::span<const uint32_t> order, uint64_t epoch) = 0;
  // Before a step is enqueued: the place that its batch is taken from. What is enqueued below
  // differs from place to place. again: the step was made before.
  virtual size_t make(const StepInput& input, bool again = false) = 0;
  virtual void enqueued(size_t place) = 0;  // the step, all of it
  // How many places there are; one: many steps may be enqueued after one make().
  virtual size_t places() const = 0;

  // Enqueues what brings the input, the target of a micro-batch to where the program has them.
  // Behind BeginBatch of that micro-batch (backend/cuda/kernels/gather.h).
  virtual void enqueue_input(const DeviceBinding& b, size_t micro, size_t place) = 0;
  virtual void enqueue_target(const DeviceBinding& b, size_t micro, size_t place) = 0;
};

struct FeedRequest {
  const Feeder& feeder;
  cuda::DeviceContext& context;
  size_t micro_batches = 1;
  size_t input_bytes = 0, target_bytes = 0;  // of the largest micro-batch; 0: not fed here
  uint64_t seed = 0;
  Ahead* ahead = nullptr;  // who makes samples on the way, if any
  Team team;
  int shard = 0;               // that this GPU computes
  const WaitForGpu& wait_for;  // how the host waits for an event
};

// Whether the data set allows the first way, and so many bytes hold it.
bool fits_on_gpu(const Feeder& feeder, size_t room);

// resident: the first way. REQUIRES: then the set fits into `room`, in bytes, which then is less.
std::unique_ptr<DeviceFeed> make_device_feed(const FeedRequest& request, bool resident,
                                             size_t& room);

// Bytes that a data set takes on the GPU.
size_t resident_bytes(const Feeder& feeder);

// One line for plans: which way, and why.
std::string feed_text(const Feeder& feeder);

}  // namespace dpt
