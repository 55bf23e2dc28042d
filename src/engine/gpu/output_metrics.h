// Metrics of outputs in an evaluation on one GPU: the host adds them from downloaded batches.
#pragma once

#include <memory>
#include <optional>

#include "engine/gpu/batch_input.h"
#include "engine/gpu/worker.h"

namespace dpt {

// The download of a batch is enqueued behind the batch. The host adds the batch when the next one
// is enqueued, so the GPU computes meanwhile. The pinned buffer is kept for all evaluations.
// Thread: the worker's. REQUIRES: all references outlive it.
class GpuOutputMetrics {
 public:
  GpuOutputMetrics(const GpuWorker& worker, const WaitForGpu& wait_for);

  // Whether the session has such metrics.
  bool wanted() const { return worker_.session.metrics.size() > 0; }
  // Adds the batch before, then enqueues the download of this one, which is enqueued itself.
  void add(const GpuBinding& b);
  // Adds the last batch. Call it at the end of an evaluation.
  void finish();

 private:
  struct Download {
    TensorDesc output, target;
    size_t target_at;  // bytes before the target in host_
  };
  const GpuWorker& worker_;
  const WaitForGpu& wait_for_;
  cuda::DeviceBuffer host_;                  // pinned, [largest output and target so far]
  std::unique_ptr<cuda::Event> downloaded_;  // null: not wanted()
  std::optional<Download> pending_;          // enqueued, and not yet added
};

}  // namespace dpt
