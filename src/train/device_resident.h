// A data set that lies on the GPU: an epoch's order is copied there, and each step gathers,
// converts and transforms its rows by it.
#pragma once

#include "train/device_feed.h"

namespace dpt {

class ResidentFeed : public DeviceFeed {
 public:
  // Uploads the data set, or what is fed of it, and waits. REQUIRES: feeder.not_stored() is empty.
  explicit ResidentFeed(const FeedRequest& request);

  void begin(std::span<const uint32_t> order) override;
  size_t make(const StepInput&, bool) override { return 0; }
  void enqueued(size_t) override {}
  size_t places() const override { return 1; }
  void enqueue_input(const DeviceBinding& b, size_t micro, size_t place) override;
  void enqueue_target(const DeviceBinding& b, size_t micro, size_t place) override;

 private:
  struct Part {
    TensorDesc sample;
    cuda::Memory bytes, values;
    int64_t value_count;
  };
  Part upload(const Feeder::Stored& stored, bool fed);

  cuda::DeviceContext& context_;
  int64_t samples_;
  cuda::Memory order_, pinned_order_;
  Part inputs_, targets_;
  cuda::BatchRows rows_;
};

}  // namespace dpt
