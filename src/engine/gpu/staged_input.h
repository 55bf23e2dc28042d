// Batches that the host makes in pinned memory. A separate stream copies them to the GPU, one batch
// ahead of the one in progress.
#pragma once

#include <array>
#include <memory>

#include "engine/gpu/batch_input.h"

namespace dpt {

class StagedFeed : public DeviceFeed {
 public:
  explicit StagedFeed(const FeedRequest& request);

  void begin(std::span<const uint32_t>, uint64_t) override {}
  size_t make(const StepInput& input, bool again) override;
  void enqueued(size_t place) override;
  size_t places() const override { return places_.size(); }
  void enqueue_input(const DeviceBinding& b, size_t micro, size_t place) override;
  void enqueue_target(const DeviceBinding& b, size_t micro, size_t place) override;

 private:
  struct Place {
    cuda::Memory pinned, device;  // [micro-batch] its input, then its target
    // events: the copy to `device` is done; its step is done
    std::unique_ptr<cuda::Event> filled, free;
  };
  void make_rows(const StepInput& input, size_t micro, Ahead* ahead, std::byte* to) const;

  FeedRequest request_;
  size_t target_at_, micro_bytes_;
  std::unique_ptr<cuda::Stream> copies_;
  std::array<Place, 2> places_;
  size_t next_ = 0;
};

}  // namespace dpt
