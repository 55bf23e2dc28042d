// Training on one GPU. All that a step enqueues, from the batch to the optimizer, is captured once
// as a graph, several steps of a small net as one, and launched again and again: what changes from
// step to step lies in memory (device_flights.h). The host does not wait between steps.
//
// Weights and states live on the GPU; finish() brings them back to the host's buffers.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "backend/cuda/context.h"
#include "comm/team.h"
#include "train/buffers.h"
#include "train/device_binding.h"
#include "train/device_feed.h"
#include "train/device_flights.h"
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

  void run(StepLoop& loop) override;
  Evaluation evaluate() override;
  Finding find_trouble(const StepInput& input) override;
  void finish() override;

  // Bytes of the GPU's memory that a session takes, without the data and the libraries' workspaces.
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
  void make_feeds(const Samples& samples);
  void upload_state();
  // The loop: steps are gathered until they are worth a launch, launched, and landed.
  size_t steps_together(const StepRows& rows);
  void launch(StepLoop& loop, std::span<const DeviceFlights::Step> steps);
  cuda::CapturedGraph& graph(const StepRows& rows, size_t place, size_t steps);
  bool land(StepLoop& loop, bool wait);
  StepResult result(const cuda::StepReport& report) const;
  // What is captured. step: of the launch.
  void enqueue(const StepRows& rows, size_t step, size_t place);
  void enqueue_divisor(const StepRows& rows, size_t step, size_t place);
  void begin(const DeviceBinding& b, const StepRows& rows, size_t micro,
             const cuda::StepEntry* entry, bool divides);
  void prepare_evaluation();
  void evaluate(const StepInput& batch);
  bool finite(const TensorView& v);
  static void check_data(int32_t bad);
  double natural_divisor(int64_t samples) const;

  const Session& session_;
  Buffers buffers_;
  Team team_;
  std::unique_ptr<cuda::DeviceApi> api_;
  StageClock* clock_;
  std::unique_ptr<cuda::Stream> stream_;
  cuda::Memory workspace_, state_;
  cuda::DeviceContext context_;
  DeviceFlights flights_;
  DeviceUpdate update_;
  cuda::Memory activations_, sums_, target_weights_;
  std::vector<std::unique_ptr<DeviceBinding>> bindings_[3];  // by What
  std::unique_ptr<DeviceFeed> feed_, test_feed_;
  Ahead* test_ahead_;
  cuda::Memory test_entries_, test_results_;  // of each batch of the test set
  // By the rows of the micro-batches (a last batch is smaller), the place that the batch is taken
  // from, and how many steps.
  std::map<std::vector<int64_t>, std::unique_ptr<cuda::CapturedGraph>> graphs_;
  std::vector<DeviceFlights::Step> gathered_;
  std::vector<OptimizerStep> formulas_;
  int stop_ = 0;
};

}  // namespace dpt
