#include "engine/gpu/output_metrics.h"

#include <utility>

namespace dpt {

GpuOutputMetrics::GpuOutputMetrics(const GpuWorker& worker, const WaitForGpu& wait_for)
    : worker_(worker),
      wait_for_(wait_for),
      downloaded_(wanted() ? worker.api().make_event() : nullptr) {}

void GpuOutputMetrics::add(const GpuBinding& b) {
  if (!wanted()) return;
  finish();
  const Graph& graph = b.program().graph;
  const TensorView output = b.view(graph.output), target = b.view(graph.target);
  const size_t target_at = cuda::aligned(output.desc.bytes());
  if (const size_t bytes = target_at + target.desc.bytes(); bytes > host_.bytes()) {
    host_ = {};  // first, or both would be there at once
    host_ = cuda::DeviceBuffer(worker_.api(), cuda::MemoryKind::pinned, bytes);
  }
  worker_.stream().copy(host_.data(), output.data, output.desc.bytes());
  worker_.stream().copy(host_.data() + target_at, target.data, target.desc.bytes());
  worker_.stream().record(*downloaded_);
  pending_ = {.output = output.desc, .target = target.desc, .target_at = target_at};
}

void GpuOutputMetrics::finish() {
  if (!pending_) return;
  const Download batch = *std::exchange(pending_, {});
  wait_for_(*downloaded_);
  worker_.session.metrics.add({batch.output, host_.data()},
                              {batch.target, host_.data() + batch.target_at},
                              worker_.buffers.metrics(worker_.shard));
}

}  // namespace dpt
