// The captured CUDA graphs of one GPU, by key, and the shapes that may be captured. A shape is what
// two steps, or two test batches, must have in common to be launched as the same graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "backend/cuda/interface/device_api.h"
#include "session/batch_partitioner.h"

namespace dpt {

// Row counts, offsets and so on, as numbers.
using StepShape = std::vector<int64_t>;

// For each micro-batch and shard, the row count, the offset and the first sample. It covers the
// shards of all GPUs, so that all GPUs capture at the same steps.
StepShape shape_of(const StepRows& rows);

// Thread: the stream's.
class CapturedGraphs {
 public:
  // REQUIRES: the stream outlives it.
  explicit CapturedGraphs(cuda::Stream& stream) : stream_(stream) {}

  // The graph of `count` steps of this shape that read the batch's slot `slot`. It is captured from
  // what enqueue(step) enqueues for each of the `count` steps, when it is asked for first.
  cuda::CapturedGraph& get(const StepShape& shape, size_t slot, size_t count,
                           const std::function<void(size_t step)>& enqueue);

  // Whether something of this shape was enqueued call by call once. Only then may it be captured: a
  // first call may load code, allocate memory or open NCCL connections, and each of these is
  // invalid during a capture.
  bool warm(const StepShape& shape) const { return warm_.contains(shape); }
  // Returns true if the shape was not warm before.
  bool set_warm(const StepShape& shape) { return warm_.insert(shape).second; }

  void clear() { graphs_.clear(); }  // destroys the graphs

 private:
  cuda::Stream& stream_;
  std::map<StepShape, std::unique_ptr<cuda::CapturedGraph>> graphs_;  // shape, slot, count
  std::set<StepShape> warm_;
};

}  // namespace dpt
