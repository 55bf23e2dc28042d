#include "engine/gpu/staged_input.h"

#include <cstring>
#include <utility>

#include "engine/clock.h"

namespace dpt {

using cuda::aligned, cuda::MemoryKind;

StagedInput::StagedInput(const BatchInputRequest& request)
    : request_(request),
      target_at_(aligned(request.input_bytes)),
      micro_bytes_(target_at_ + aligned(request.target_bytes)),
      copies_(request.context.api.make_stream()) {
  cuda::DeviceApi& api = request_.context.api;
  const size_t bytes = request_.micro_batches * micro_bytes_;
  for (Slot& p : slots_)
    p = {.pinned = cuda::DeviceBuffer(api, MemoryKind::pinned, bytes),
         .device = cuda::DeviceBuffer(api, MemoryKind::device, bytes),
         .filled = api.make_event(),
         .free = api.make_event()};
}

void StagedInput::make_rows(const StepInput& step, size_t micro, PrefetchStream* prefetch,
                            std::byte* to) {
  const BatchLoader& loader = request_.loader;
  const Rows rows = step.rows->micro[micro][static_cast<size_t>(request_.shard)].rows;
  if (rows.count() == 0) return;
  const DrawnSamples order =
      step.order.subspan(static_cast<size_t>(rows.begin), static_cast<size_t>(rows.count()));
  const bool inputs = request_.input_bytes > 0;
  const bool waits = inputs && prefetch != nullptr;
  const double begin = waits ? now_s() : 0;
  const BatchLease lease(inputs ? prefetch : nullptr, step.batch, static_cast<int>(micro),
                         {request_.shard, request_.shard + 1}, request_.team);
  if (waits) waited_s_ += now_s() - begin;
  if (inputs && loader.input().dtype == DType::i32)
    loader.inputs(order, reinterpret_cast<int32_t*>(to));
  else if (inputs)
    loader.inputs(order, reinterpret_cast<float*>(to), {request_.seed, step.epoch}, lease.bytes());
  if (request_.target_bytes == 0) return;
  std::byte* const target = to + target_at_;
  if (inputs && loader.target_is_input())
    std::memcpy(target, to, order.size() * loader.input().bytes());
  else if (loader.target().dtype == DType::i32)
    loader.targets(order, reinterpret_cast<int32_t*>(target), {request_.seed, step.epoch});
  else
    loader.targets(order, reinterpret_cast<float*>(target), {request_.seed, step.epoch});
}

size_t StagedInput::make(const StepInput& input, bool again) {
  const size_t at = next_;
  next_ = (next_ + 1) % slots_.size();
  Slot& slot = slots_[at];
  request_.wait_for(*slot.filled);  // the copy of two batches ago has read the pinned memory
  const size_t micro_batches = input.rows->micro.size();
  for (size_t m = 0; m < micro_batches; ++m)
    make_rows(input, m, again ? nullptr : request_.prefetch, slot.pinned.data() + m * micro_bytes_);
  copies_->wait(*slot.free);
  copies_->copy(slot.device.data(), slot.pinned.data(), micro_batches * micro_bytes_);
  copies_->record(*slot.filled);
  request_.context.stream.wait(*slot.filled);
  return at;
}

void StagedInput::enqueued(size_t slot) { request_.context.stream.record(*slots_[slot].free); }

void StagedInput::enqueue_input(const GpuBinding& b, size_t micro, size_t slot) {
  const TensorView to = b.view(b.program().graph.input);
  request_.context.stream.copy(to.data, slots_[slot].device.data() + micro * micro_bytes_,
                               to.desc.bytes());
}

void StagedInput::enqueue_target(const GpuBinding& b, size_t micro, size_t slot) {
  const TensorView to = b.view(b.program().graph.target);
  if (to.data == nullptr) return;
  request_.context.stream.copy(
      to.data, slots_[slot].device.data() + micro * micro_bytes_ + target_at_, to.desc.bytes());
}

}  // namespace dpt
