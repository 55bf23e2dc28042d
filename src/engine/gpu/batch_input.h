// Batch input for one GPU and one data set. Either the data set is resident on the GPU, which
// gathers its own batches (resident_input.h), or the host makes batches in pinned memory and copies
// them while the GPU computes (staged_input.h).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "backend/cuda/interface/context.h"
#include "comm/team.h"
#include "data/batch_loader.h"
#include "engine/gpu/binding.h"
#include "engine/step_executor.h"
#include "session/compiled_model.h"
#include "session/session_batches.h"
#include "session/session_data.h"

namespace dpt {

// How the host waits for an event of its GPU: simply, or watching the other ranks (team.h).
using WaitForGpu = std::function<void(cuda::Event&)>;

class BatchInput {
 public:
  virtual ~BatchInput() = default;

  // Starts an epoch in which rows refer to `order`. REQUIRES: no step of the epoch before is in
  // progress.
  virtual void begin(DrawnSamples order, uint64_t epoch) = 0;
  // Prepares a step's batch before the step is enqueued. Returns its slot; the enqueued work
  // differs between slots. again: the step was made before, so the prefetched samples are gone.
  virtual size_t make(const StepInput& input, bool again = false) = 0;
  virtual void enqueued(size_t slot) = 0;  // call it after all work of the step is enqueued
  // The number of slots. With one slot, several steps may be enqueued after one make().
  virtual size_t slots() const = 0;
  // Seconds so far in which the host waited for samples that are read from files.
  virtual double waited_seconds() const { return 0; }

  // Enqueue the copy or gather of a micro-batch's input or target to where the program reads it.
  // REQUIRES: BeginBatch of that micro-batch is enqueued before (backend/cuda/kernels/gather.h).
  virtual void enqueue_input(const GpuBinding& b, size_t micro, size_t slot) = 0;
  virtual void enqueue_target(const GpuBinding& b, size_t micro, size_t slot) = 0;
};

struct BatchInputRequest {
  const BatchLoader& loader;
  cuda::DeviceContext& context;
  size_t micro_batches = 1;
  size_t input_bytes = 0, target_bytes = 0;  // of the largest micro-batch; 0: this GPU reads none
  uint64_t seed = 0;
  PrefetchStream* prefetch = nullptr;  // the rank's prefetched samples; null: none
  Team team;
  int shard = 0;  // the shard that this GPU computes
  const WaitForGpu& wait_for;
};

// True if the data set can be resident on the GPU and fits into `room` bytes.
bool fits_on_gpu(const BatchLoader& loader, size_t free_bytes);

// resident: keep the data set on the GPU. REQUIRES: then it fits into `room` bytes; `room` is
// reduced by its size.
std::unique_ptr<BatchInput> make_batch_input(const BatchInputRequest& request, bool resident,
                                             size_t& free_bytes);

// Bytes of GPU memory that a resident data set takes, including an epoch's order.
size_t resident_bytes(const BatchLoader& loader);
// Those of the order: a sample number for each sample, and how many times it was drawn before if
// random transforms need it.
size_t order_bytes(const BatchLoader& loader);

// Bytes of GPU memory for the batch of a step that the host makes, on a device of a replica; 0: the
// data set can be resident.
size_t staged_bytes(const SessionData& data, const SessionBatches& batches,
                    const CompiledModel& model, int device);
// How many of these a GPU has.
inline constexpr size_t kStagedBatches = 2;

// One line for `dptrain plan`: where batches are made, and why.
std::string batch_input_text(const BatchLoader& loader);

}  // namespace dpt
