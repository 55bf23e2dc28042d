// A step of training on one GPU. All that it enqueues, from the copies of the batch to the
// optimizer, is captured once as a graph and launched again for every step: what changes from step
// to step lies in memory (backend/cuda/kernels/step_state.h).
//
// Weights and states live on the GPU; finish() brings them back to the host's buffers.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "backend/cuda/context.h"
#include "comm/team.h"
#include "train/buffers.h"
#include "train/device_binding.h"
#include "train/device_feed.h"
#include "train/device_step.h"
#include "train/device_update.h"
#include "train/session.h"
#include "train/stage_clock.h"
#include "train/step_executor.h"

namespace dpt {

class DeviceExecutor : public StepExecutor {
 public:
  // Thread: that which made `api`. REQUIRES: session.on_gpu(); `buffers` hold the first weights.
  DeviceExecutor(const Session& session, const Buffers& buffers, Team team,
                 std::unique_ptr<cuda::DeviceApi> api, const Samples& samples,
                 StageClock* clock = nullptr);

  StepResult step(const StepInput& input) override;
  Evaluation evaluate() override;
  Finding find_trouble(const StepInput& input) override;
  void finish() override;

  // Bytes of the GPU's memory that a session takes, without the libraries' workspaces.
  struct Needs {
    size_t weights = 0, gradients = 0, states = 0, activations = 0;
    size_t all() const { return weights + gradients + states + activations; }
  };
  static Needs needs(const Session& session);

 private:
  enum What { train, train_more, test };  // train_more: gradients that are added to those before
  using Micro = std::vector<ShardRows>;

  DeviceBinding& binding(const Micro& micro, What what);
  void bind();
  void feed(const Feeder& feeder, const Micro& micro, size_t number, const StepInput& input,
            Ahead* ahead);
  double sum_target_weights(const StepInput& input);
  void fill_host(const StepInput& input, double divisor);
  void enqueue_feed(DeviceBinding& b, size_t number);
  void enqueue(const StepInput& input);
  double read_double(const DeviceBinding& b, ValueId v);
  bool finite(const TensorView& v);
  void check_data() const;
  double natural_divisor(int64_t samples) const;
  DeviceStep* step_on_device() const { return reinterpret_cast<DeviceStep*>(step_.data()); }

  const Session& session_;
  Buffers buffers_;
  Team team_;
  std::unique_ptr<cuda::DeviceApi> api_;
  Samples samples_;
  StageClock* clock_;
  std::unique_ptr<cuda::Stream> stream_;
  cuda::Memory workspace_, step_;
  cuda::Memory host_, back_;  // pinned: the step, as the host fills it, and what it reads
  cuda::DeviceContext context_;
  DeviceUpdate update_;
  cuda::Memory activations_, sums_;
  DeviceFeed feed_;
  std::vector<std::unique_ptr<DeviceBinding>> bindings_[3];  // by What
  // By the rows of the micro-batches: a last batch is smaller.
  std::map<std::vector<int64_t>, std::unique_ptr<cuda::CapturedGraph>> graphs_;
};

}  // namespace dpt
