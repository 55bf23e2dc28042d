#include "engine/gpu/staged_input.h"

#include <utility>

namespace dpt {

using cuda::aligned, cuda::MemoryKind;

StagedFeed::StagedFeed(const FeedRequest& request)
    : request_(request),
      target_at_(aligned(request.input_bytes)),
      micro_bytes_(target_at_ + aligned(request.target_bytes)),
      copies_(request.context.api.make_stream()) {
  cuda::DeviceApi& api = request_.context.api;
  const size_t bytes = request_.micro_batches * micro_bytes_;
  for (Place& p : places_)
    p = {.pinned = cuda::Memory(api, MemoryKind::pinned, bytes),
         .device = cuda::Memory(api, MemoryKind::device, bytes),
         .filled = api.make_event(),
         .free = api.make_event()};
}

void StagedFeed::make_rows(const StepInput& step, size_t micro, Ahead* ahead, std::byte* to) const {
  const Feeder& feeder = request_.feeder;
  const Rows rows = step.rows->micro[micro][static_cast<size_t>(request_.shard)].rows;
  if (rows.count() == 0) return;
  const auto order =
      step.order.subspan(static_cast<size_t>(rows.begin), static_cast<size_t>(rows.count()));
  const bool inputs = request_.input_bytes > 0;
  const Taken taken(inputs ? ahead : nullptr, step.batch, static_cast<int>(micro),
                    {request_.shard, request_.shard + 1}, request_.team);
  if (inputs && feeder.input().dtype == DType::i32)
    feeder.inputs(order, reinterpret_cast<int32_t*>(to));
  else if (inputs)
    feeder.inputs(order, reinterpret_cast<float*>(to), {request_.seed, step.epoch}, taken.bytes());
  if (request_.target_bytes == 0) return;
  std::byte* const target = to + target_at_;
  if (feeder.target().dtype == DType::i32)
    feeder.targets(order, reinterpret_cast<int32_t*>(target));
  else
    feeder.targets(order, reinterpret_cast<float*>(target));
}

size_t StagedFeed::make(const StepInput& input, bool again) {
  const size_t at = next_;
  next_ = (next_ + 1) % places_.size();
  Place& place = places_[at];
  request_.wait_for(*place.filled);  // the copy of two batches ago has read the pinned memory
  const size_t micro_batches = input.rows->micro.size();
  for (size_t m = 0; m < micro_batches; ++m)
    make_rows(input, m, again ? nullptr : request_.ahead, place.pinned.data() + m * micro_bytes_);
  copies_->wait(*place.free);
  copies_->copy(place.device.data(), place.pinned.data(), micro_batches * micro_bytes_);
  copies_->record(*place.filled);
  request_.context.stream.wait(*place.filled);
  return at;
}

void StagedFeed::enqueued(size_t place) { request_.context.stream.record(*places_[place].free); }

void StagedFeed::enqueue_input(const DeviceBinding& b, size_t micro, size_t place) {
  const TensorView to = b.view(b.program().graph.input);
  request_.context.stream.copy(to.data, places_[place].device.data() + micro * micro_bytes_,
                               to.desc.bytes());
}

void StagedFeed::enqueue_target(const DeviceBinding& b, size_t micro, size_t place) {
  const TensorView to = b.view(b.program().graph.target);
  if (to.data == nullptr) return;
  request_.context.stream.copy(
      to.data, places_[place].device.data() + micro * micro_bytes_ + target_at_, to.desc.bytes());
}

}  // namespace dpt
