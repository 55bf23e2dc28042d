#include "train/device_feed.h"

namespace dpt {
namespace {

size_t aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace

DeviceFeed::DeviceFeed(cuda::DeviceApi& api, cuda::Stream& stream, const Sizes& sizes,
                       size_t micro_batches)
    : stream_(stream),
      sizes_{aligned(sizes.input), aligned(sizes.target)},
      inputs_(api, cuda::MemoryKind::pinned, micro_batches * sizes_.input),
      targets_(api, cuda::MemoryKind::pinned, micro_batches * sizes_.target) {}

void DeviceFeed::fill(const Feeder& feeder, const std::vector<ShardRows>& micro, size_t number,
                      const StepInput& step, uint64_t seed, Ahead* ahead, const Team& team) {
  const Rows rows = micro[0].rows;
  const auto order =
      step.order.subspan(static_cast<size_t>(rows.begin), static_cast<size_t>(rows.count()));
  const Taken taken(ahead, step.batch, static_cast<int>(number), {0, 1}, team);
  if (feeder.input().dtype == DType::i32)
    feeder.inputs(order, reinterpret_cast<int32_t*>(input(number)));
  else
    feeder.inputs(order, reinterpret_cast<float*>(input(number)), {seed, step.epoch},
                  taken.bytes());
  if (feeder.target().dtype == DType::i32)
    feeder.targets(order, reinterpret_cast<int32_t*>(target(number)));
  else
    feeder.targets(order, reinterpret_cast<float*>(target(number)));
}

void DeviceFeed::enqueue(const DeviceBinding& b, size_t number) {
  const TensorView to = b.view(b.program().graph.input);
  stream_.copy(to.data, input(number), to.desc.bytes());
  enqueue_target(b, number);
}

void DeviceFeed::enqueue_target(const DeviceBinding& b, size_t number) {
  const TensorView to = b.view(b.program().graph.target);
  if (to.data != nullptr) stream_.copy(to.data, target(number), to.desc.bytes());
}

}  // namespace dpt
