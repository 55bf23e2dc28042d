// Batches that the host makes in pinned memory. A separate stream copies them to the GPU, one batch
// ahead of the one in progress.
#pragma once

#include <array>
#include <memory>

#include "engine/gpu/batch_input.h"

namespace dpt {

class StagedInput : public BatchInput {
 public:
  explicit StagedInput(const BatchInputRequest& request);

  void begin(DrawnSamples, uint64_t) override {}
  size_t make(const StepInput& input, bool again) override;
  void enqueued(size_t slot) override;
  size_t slots() const override { return slots_.size(); }
  double waited_seconds() const override { return waited_s_; }
  void enqueue_input(const GpuBinding& b, size_t micro, size_t slot) override;
  void enqueue_target(const GpuBinding& b, size_t micro, size_t slot) override;

 private:
  struct Slot {
    cuda::DeviceBuffer pinned, device;  // [micro-batch] its input, then its target
    // events: the copy to `device` is done; its step is done
    std::unique_ptr<cuda::Event> filled, free;
  };
  void make_rows(const StepInput& input, size_t micro, PrefetchStream* prefetch, std::byte* to);

  BatchInputRequest request_;
  size_t target_at_, micro_bytes_;
  std::unique_ptr<cuda::Stream> copies_;
  std::array<Slot, 2> slots_;
  size_t next_ = 0;
  double waited_s_ = 0;
};

}  // namespace dpt
