// A data set that is resident on the GPU. An epoch's order is copied there, and each step gathers,
// converts and transforms its rows. With random image transforms, a first kernel makes a frame for
// each row (the drawn transform), and a second one draws the images by their frames.
#pragma once

#include "backend/cuda/kernels/gather.h"
#include "engine/gpu/batch_input.h"

namespace dpt {

class ResidentInput : public BatchInput {
 public:
  // Uploads the data set, without inputs or targets that this GPU does not read, and waits.
  // REQUIRES: loader.not_stored() is empty.
  explicit ResidentInput(const BatchInputRequest& request);

  void begin(DrawnSamples order, uint64_t epoch) override;
  size_t make(const StepInput&, bool) override { return 0; }
  void enqueued(size_t) override {}
  size_t slots() const override { return 1; }
  void enqueue_input(const GpuBinding& b, size_t micro, size_t slot) override;
  void enqueue_target(const GpuBinding& b, size_t micro, size_t slot) override;

 private:
  struct Part {
    TensorDesc sample;
    int64_t step;
    cuda::DeviceBuffer bytes, values, colours;
    int64_t value_count;
    augment::Changes changes;
  };
  Part upload(const BatchLoader::Stored& stored, bool used);
  void enqueue_samples(const Part& part, const TensorView& to);
  void enqueue_frames(const Part& part, const TensorView& to);
  template <class T>
  void draw(const Part& part, const TensorView& to);

  cuda::DeviceContext& context_;
  int64_t samples_;
  // The epoch index (uint64), the sample numbers, and with random image transforms the repeats.
  cuda::DeviceBuffer order_, pinned_order_;
  size_t repeats_at_;  // bytes before the repeats; 0: there are none
  bool target_is_input_;
  Part inputs_, targets_;  // targets that are inputs: only if this GPU does not read the inputs
  cuda::BatchRows rows_;
  cuda::DeviceBuffer frames_;  // [rows of the largest micro-batch]
};

}  // namespace dpt
