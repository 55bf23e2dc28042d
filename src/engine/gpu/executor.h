// Training on one GPU: alone, as one of several that sum their gradients (exchange.h), or as one
// that has some stages of a model (stages.h). A step's work, from the batch to the optimizer, is
// captured as a CUDA graph and launched again for later steps; several steps of a small model are
// captured as one graph. The first step of each shape is enqueued call by call. What changes
// between steps is read from memory (launch_queue.h). The host does not synchronize between steps.
//
// Every GPU has its own weights and optimizer states, equal on all replicas. gather() copies those
// of the first replica to the host's buffers. The hosts of several GPUs pass one barrier in each
// step, while the GPUs compute, and make all calls that wait for a GPU at the same steps.
//
// With several hosts (machines), those of each pass a barrier in each launch, and no host waits for
// another one in a step. Stop signals and the times of checkpoints travel in the sum of the losses
// (LaunchDecisions): all workers read the same ones at the same step.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backend/cuda/interface/context.h"
#include "engine/gpu/batch_input.h"
#include "engine/gpu/binding_table.h"
#include "engine/gpu/captured_graphs.h"
#include "engine/gpu/evaluation.h"
#include "engine/gpu/exchange.h"
#include "engine/gpu/gather.h"
#include "engine/gpu/launch_queue.h"
#include "engine/gpu/replica_weights.h"
#include "engine/gpu/stages.h"
#include "engine/gpu/step.h"
#include "engine/gpu/team.h"
#include "engine/gpu/update.h"
#include "engine/gpu/worker.h"
#include "engine/plan_step_clock.h"
#include "engine/step_executor.h"
#include "session/buffers.h"
#include "session/gpu_share.h"
#include "session/session.h"

namespace dpt {

class GpuExecutor : public StepExecutor {
 public:
  // Thread: the one that made `api`, for all calls. REQUIRES: session.devices.on_gpu(); `buffers`
  // hold the initial weights.
  // link: with several hosts, to the others, on the leader of each; null: none.
  GpuExecutor(const Session& session, const Buffers& buffers, const GpuTeam& gpus,
              std::unique_ptr<cuda::DeviceApi> api, const Samples& samples,
              PlanStepClock* clock = nullptr, Link* link = nullptr);
  ~GpuExecutor() override;

  void run(StepLoop& loop) override;
  Evaluation evaluate(const BatchesDone& done) override;
  NonFiniteReport find_non_finite(const StepInput& input) override;
  void resume(int64_t updates, const GradientScaler::State& scaler) override;
  void receive_start() override;
  void gather() override;
  void swap_average() override;
  double data_seconds() const override { return batch_input_ ? batch_input_->waited_seconds() : 0; }
  void finish() override;

  // Bytes of GPU memory that a session needs, without the data set and the libraries' workspaces.
  struct Needs {
    size_t weights = 0, gradients = 0, states = 0, activations = 0;
    size_t all() const { return weights + gradients + states + activations; }
  };
  static Needs needs(const Session& session, int device = 0);  // device: index in the replica

 private:
  void make_exchange();
  size_t room_for_data();
  void make_batch_inputs(const Samples& samples);
  void upload_state(int64_t updates, const GradientScaler::State& scaler);
  // The training loop collects steps until they fill a launch, launches them, and completes them.
  bool captures(const StepRows& rows) const;
  size_t steps_together(const StepRows& rows);
  void launch(StepLoop& loop, std::span<const LaunchQueue::Step> steps);
  void begin_step();
  LaunchDecisions own_decisions(std::span<const LaunchQueue::Step> steps) const;
  cuda::CapturedGraph& graph(const StepRows& rows, size_t slot, size_t steps);
  bool complete(StepLoop& loop, bool wait);
  void take(const LaunchDecisions& decisions);
  StepResult result(const StepRows& rows, const cuda::StepReport& report) const;
  void wait();
  void give_up() noexcept;

  const Session& session_;
  GpuTeam gpus_;
  const GpuShare& share_;
  std::unique_ptr<cuda::DeviceApi> api_;
  PlanStepClock* clock_;
  std::unique_ptr<cuda::Stream> stream_;
  std::unique_ptr<cuda::Event> done_;           // null: the run has one GPU
  cuda::Communicator* communicator_ = nullptr;  // of the exchange; null: none
  WaitForGpu wait_for_;
  cuda::DeviceBuffer state_;
  cuda::DeviceContext context_;
  std::optional<GpuHostExchange> hosts_;  // with several hosts, on the leader of each
  GpuWorker worker_;
  LaunchQueue launch_queue_;
  GpuUpdate update_;
  ReplicaWeights weights_;
  // Set by the constructor.
  std::optional<GpuBindingTable> bindings_;
  std::unique_ptr<BatchInput> batch_input_, test_batch_input_;  // null: this GPU reads none
  std::optional<GpuStep> step_;
  std::optional<GpuEvaluation> evaluation_;  // empty: there is no evaluated set
  std::unique_ptr<GpuStages> stages_;        // null: this GPU has all stages
  std::unique_ptr<GpuGather> gather_;        // null: each GPU computes the loss of its own rows
  // Null: the run has one replica. Destroyed before stages_ and gather_, whose memory its waiting
  // calls may use.
  std::unique_ptr<GpuExchange> exchange_;
  CapturedGraphs graphs_;
  std::vector<LaunchQueue::Step> gathered_;
  std::vector<OptimizerStep> formulas_;
  int stop_ = 0;
  bool pause_ = false;
};

// The executor of one worker, on the GPU that the session assigns to it.
std::unique_ptr<GpuExecutor> make_gpu_executor(const Session& session, const Buffers& buffers,
                                               Team team, int worker, const GpuAccess& access,
                                               const StepExecutor::Samples& samples,
                                               PlanStepClock* clock = nullptr);

}  // namespace dpt
