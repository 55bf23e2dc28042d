// Training on one GPU: alone, as one of several that sum their gradients (exchange.h), or as one
// that has some stages of a model (stages.h). A step's work, from the batch to the optimizer, is
// captured as a CUDA graph and launched again for later steps; several steps of a small model are
// captured as one graph. The first step of each shape is enqueued call by call. What changes
// between steps is read from memory (launch_queue.h). The host does not synchronize between steps.
//
// Every GPU has its own weights and optimizer states, equal on all replicas. gather() copies those
// of the first replica to the host's buffers. The hosts of several GPUs pass one barrier in each
// step, while the GPUs compute, and make all calls that wait for a GPU at the same steps.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "backend/cuda/interface/context.h"
#include "engine/gpu/batch_input.h"
#include "engine/gpu/binding.h"
#include "engine/gpu/exchange.h"
#include "engine/gpu/gather.h"
#include "engine/gpu/launch_queue.h"
#include "engine/gpu/stages.h"
#include "engine/gpu/team.h"
#include "engine/gpu/update.h"
#include "engine/plan_step_clock.h"
#include "engine/step_executor.h"
#include "session/buffers.h"
#include "session/gpu_share.h"
#include "session/session.h"

namespace dpt {

class GpuExecutor : public StepExecutor {
 public:
  // Thread: the one that made `api`, for all calls. REQUIRES: session.on_gpu(); `buffers` hold the
  // initial weights.
  GpuExecutor(const Session& session, const Buffers& buffers, const GpuTeam& gpus,
              std::unique_ptr<cuda::DeviceApi> api, const Samples& samples,
              PlanStepClock* clock = nullptr);
  ~GpuExecutor() override;

  void run(StepLoop& loop) override;
  Evaluation evaluate(const BatchesDone& done) override;
  NonFiniteReport find_non_finite(const StepInput& input) override;
  void resume(int64_t updates, const GradientScaler::State& scaler) override;
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
  // train_more: gradients are added to those of earlier micro-batches. train_last: the same for a
  // last micro-batch with a program of its own (session.last_programs).
  enum ProgramKind { train, train_more, test, train_last, kinds };
  using Micro = std::vector<ShardRows>;

  ProgramKind program_kind(size_t chunk) const;
  // The binding for this GPU's rows of `micro`. chunk: the number of the micro-batch, whose
  // activations have memory of their own if several are in flight.
  GpuBinding& binding(const Micro& micro, ProgramKind kind, size_t chunk = 0);
  // Bindings of this kind of program; chunk c uses the binding c % slot_count().
  size_t slot_count(ProgramKind kind) const;
  GpuBinding::BufferPointers memory(ProgramKind kind, size_t chunk) const;
  void bind();
  void make_exchange();
  size_t room_for_data();
  void make_batch_inputs(const Samples& samples);
  void upload_state(int64_t updates, const GradientScaler::State& scaler);
  // The training loop collects steps until they fill a launch, launches them, and completes them.
  bool captures(const StepRows& rows) const;
  size_t steps_together(const StepRows& rows);
  void launch(StepLoop& loop, std::span<const LaunchQueue::Step> steps);
  cuda::CapturedGraph& graph(const StepRows& rows, size_t slot, size_t steps);
  cuda::CapturedGraph& captured(std::vector<int64_t> key, const std::function<void()>& enqueue_all);
  bool complete(StepLoop& loop, bool wait);
  StepResult result(const StepRows& rows, const cuda::StepReport& report) const;
  // These enqueue what a graph captures: the steps of the plan.
  struct StepInProgress {
    const StepRows& rows;
    size_t step = 0, slot = 0;        // index in the launch, slot of the batch's input
    size_t micro = 0;                 // the current micro-batch
    size_t backward = 0;              // instructions of its backward part that are enqueued
    const std::byte* loss = nullptr;  // the step's only loss; null: all were kept
  };
  void enqueue(const StepRows& rows, size_t step, size_t slot);
  void execute(const PlanStep& s, StepInProgress& now);
  bool elsewhere(const PlanStep& s) const;
  GpuBinding* binding_of(const StepInProgress& now);
  void begin(const GpuBinding* b, const StepRows& rows, size_t micro, const cuda::StepEntry* entry,
             bool divides);
  void begin(const GpuBinding* b, const StepInProgress& now);
  void load(const PlanStep& s, const StepInProgress& now);
  void load_targets(const StepInProgress& now);
  void run(const PlanStep& s, StepInProgress& now);
  void run_prologue(const StepInProgress& now);
  void run_part(Part part, GpuBinding* b, size_t begin, size_t end);
  void run_loss(StepInProgress& now, GpuBinding* b);
  void run_losses_of_all(const StepInProgress& now, GpuBinding* b);
  void run_stage(const PlanStep& op, GpuBinding* b);
  const Program& program_of(const GpuBinding* b) const;
  size_t instructions(Part part, const GpuBinding* b) const;
  template <class F>
  void each_stored(int stage, F f) const;
  void add_gradients(const PlanStep& s, const StepInProgress& now);
  void gather(const PlanStep& s, const StepInProgress& now);
  GpuExchange::Terms terms_of(Quantity what) const;
  void sum(const PlanStep& s, const StepInProgress& now);
  void decide(const StepInProgress& now);
  void broadcast_decision(const StepInProgress& now);
  void share_weights();
  // Stages on several GPUs: pipeline.cpp.
  void evaluate_in_stages(const StepInput& input);
  bool has_stage(int stage) const { return !stages_ || stages_->has(stage); }
  int last_stage() const { return session_.graph.stages() - 1; }
  bool reports_first() const;
  const ShardRows& own(const Micro& micro) const { return micro[static_cast<size_t>(shard_)]; }
  void wait();
  void prepare_evaluation();
  int64_t launch_evaluation(std::span<const uint32_t> order, const BatchesDone& done);
  int64_t run_stage_evaluation(std::span<const uint32_t> order, const BatchesDone& done);
  void evaluate(const StepInput& first, size_t batches);
  std::vector<int64_t> test_key(const StepRows& rows) const;
  bool warm_test(const StepRows& rows) const;
  cuda::CapturedGraph& test_graph(const StepRows& rows, size_t slot, size_t batches);
  void enqueue_test(const StepRows& rows, size_t slot);
  void keep_results(const GpuBinding& b);
  void add_metrics(const GpuBinding& b);
  const cuda::StepEntry* test_entry(int64_t batch) const {
    return reinterpret_cast<const cuda::StepEntry*>(test_entries_.data()) + batch;
  }
  cuda::TestSums* test_sums() const { return reinterpret_cast<cuda::TestSums*>(test_sums_.data()); }
  void check_finite(const StepInput& input, NonFinite& found);
  void check_stage_finite(GpuBinding& b, int stage, size_t micro, NonFinite& found);
  void gather_weights();
  void share_buffers();
  void same_weights();
  bool finite(const TensorView& v);
  void give_up() noexcept;
  static void check_data(int32_t bad);
  double natural_divisor(int64_t samples) const;

  const Session& session_;
  Buffers buffers_;
  GpuTeam gpus_;
  int shard_;  // the shard of each batch that this GPU computes
  GpuShare share_;
  std::unique_ptr<cuda::DeviceApi> api_;
  PlanStepClock* clock_;
  std::unique_ptr<cuda::Stream> stream_;
  std::unique_ptr<cuda::Event> done_;           // null: the run has one GPU
  cuda::Communicator* communicator_ = nullptr;  // of the exchange; null: none
  WaitForGpu wait_for_;
  cuda::DeviceBuffer workspace_, state_;
  cuda::DeviceContext context_;
  LaunchQueue launch_queue_;
  GpuUpdate update_;
  cuda::DeviceBuffer activations_, sums_, target_weights_;
  size_t micro_batches_;
  // For each program: the instruction of the backward part that completes a bucket.
  std::map<const Program*, std::vector<size_t>> made_after_;
  std::vector<std::unique_ptr<GpuBinding>> bindings_[kinds];
  std::unique_ptr<BatchInput> batch_input_, test_batch_input_;
  PrefetchStream* test_prefetch_;
  cuda::DeviceBuffer test_entries_;  // [batches of the test set] their entries, uploaded once
  cuda::DeviceBuffer test_entry_, test_sums_;  // entry of the current batch; sums over past batches
  std::unique_ptr<GpuStages> stages_;          // null: this GPU has all stages
  std::unique_ptr<GpuGather> gather_;          // null: each GPU computes the loss of its own rows
  // Null: the run has one replica. Destroyed before stages_ and gather_, whose memory its waiting
  // calls may use.
  std::unique_ptr<GpuExchange> exchange_;
  // The captured graphs, keyed by the row counts of the micro-batches (a last batch is smaller),
  // the kind, the input slot, and the number of steps.
  std::map<std::vector<int64_t>, std::unique_ptr<cuda::CapturedGraph>> graphs_;
  std::vector<LaunchQueue::Step> gathered_;
  std::vector<OptimizerStep> formulas_;
  // The shapes of steps and test batches that were enqueued call by call once. Only then are they
  // captured: a first call may load code, allocate memory or open NCCL connections, and each of
  // these is invalid during a capture.
  std::set<std::vector<int64_t>> warm_, warm_tests_;
  int stop_ = 0;
};

// The executor of one worker, on the GPU that the session assigns to it.
std::unique_ptr<GpuExecutor> make_gpu_executor(const Session& session, const Buffers& buffers,
                                               Team team, int worker, const GpuAccess& access,
                                               const StepExecutor::Samples& samples,
                                               PlanStepClock* clock = nullptr);

}  // namespace dpt
