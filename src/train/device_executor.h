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
  ~DeviceExecutor() override;

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
  // What the GPU gets for a step; `formula` is the optimizer's, in f32.
  struct Host {
    cuda::StepState state;
    float divisor, scale;
    alignas(16) std::byte formula[96];
  };

  DeviceBinding& binding(const Micro& micro, What what);
  void bind();
  void upload();
  void feed(const Feeder& feeder, const Micro& micro, size_t number, const StepInput& input,
            Ahead* ahead);
  void feed_targets(const Feeder& feeder, const Micro& micro, size_t number,
                    std::span<const uint32_t> order);
  double sum_target_weights(const StepInput& input);
  void fill_host(const StepInput& input, double divisor);
  void enqueue_feed(DeviceBinding& b, size_t number);
  void enqueue(const StepInput& input);
  void enqueue_judgement(size_t micro_batches);
  void enqueue_update(const OptimizerStep& step);
  double read_double(const DeviceBinding& b, ValueId v);
  bool finite(const TensorView& v);
  void check_data() const;
  double natural_divisor(int64_t samples) const;

  const Session& session_;
  Buffers buffers_;
  Team team_;
  std::unique_ptr<cuda::DeviceApi> api_;
  Samples samples_;
  StageClock* clock_;
  size_t input_bytes_ = 0, target_bytes_ = 0;  // of the largest micro-batch
  std::unique_ptr<cuda::Stream> stream_;
  cuda::Memory weights_, gradients_, more_, states_, activations_, sums_, workspace_;
  cuda::Memory step_, losses_, power_;           // the GPU's copy of Host, and what is judged
  cuda::Memory host_, inputs_, targets_, back_;  // pinned
  std::unique_ptr<cuda::DeviceContext> context_;
  std::vector<std::unique_ptr<DeviceBinding>> bindings_[3];  // by What
  // By the rows of the micro-batches: a last batch is smaller.
  std::map<std::vector<int64_t>, std::unique_ptr<cuda::CapturedGraph>> graphs_;
};

}  // namespace dpt
