// Training on one GPU, of several that sum their gradients (exchange.h), or that have stages
// of one model (stages.h), or alone. All that
// a step enqueues, from the batch to the optimizer, is captured once as a graph, several steps of a
// small net as one, and launched again and again,
// after a first step of the same shape that is enqueued call by call: what changes from step to
// step lies in memory (launch_queue.h). The host does not wait between steps.
//
// Weights and states live on each GPU, and are the same on all; gather() brings the first one's
// back to the host's buffers. Hosts of several GPUs meet once a step, while their GPUs compute, and
// do all that waits for a GPU at the same steps.
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
#include "engine/stage_clock.h"
#include "engine/step_executor.h"
#include "session/buffers.h"
#include "session/gpu_share.h"
#include "session/session.h"

namespace dpt {

class DeviceExecutor : public StepExecutor {
 public:
  // Thread: that which made `api`. REQUIRES: session.on_gpu(); `buffers` hold the first weights.
  DeviceExecutor(const Session& session, const Buffers& buffers, const DeviceTeam& gpus,
                 std::unique_ptr<cuda::DeviceApi> api, const Samples& samples,
                 StageClock* clock = nullptr);
  ~DeviceExecutor() override;

  void run(StepLoop& loop) override;
  Evaluation evaluate(const BatchesDone& done) override;
  Finding find_trouble(const StepInput& input) override;
  void go_on(int64_t updates, const GradientScaler::State& scaler) override;
  void gather() override;
  void finish() override;

  // Bytes of the GPU's memory that a session takes, without the data and the libraries' workspaces.
  struct Needs {
    size_t weights = 0, gradients = 0, states = 0, activations = 0;
    size_t all() const { return weights + gradients + states + activations; }
  };
  static Needs needs(const Session& session, int device = 0);  // of a replica

 private:
  // train_more: gradients that are added to those before; train_last: so are the last chunk's, by
  // session.last_programs.
  enum What { train, train_more, test, train_last, whats };
  using Micro = std::vector<ShardRows>;

  What which(size_t chunk) const;
  // Of that chunk, whose memory differs where several are in flight.
  DeviceBinding& binding(const Micro& micro, What what, size_t chunk = 0);
  size_t turns(What what) const;  // chunks after which bindings come round again
  DeviceBinding::Memory memory(What what, size_t chunk) const;
  void bind();
  void make_exchange();
  size_t room_for_data();
  void make_feeds(const Samples& samples);
  void upload_state(int64_t updates, const GradientScaler::State& scaler);
  // The loop: steps are gathered until they are worth a launch, launched, and landed.
  bool captures(const StepRows& rows) const;
  size_t steps_together(const StepRows& rows);
  void launch(StepLoop& loop, std::span<const DeviceFlights::Step> steps);
  cuda::CapturedGraph& graph(const StepRows& rows, size_t place, size_t steps);
  cuda::CapturedGraph& captured(std::vector<int64_t> key, const std::function<void()>& enqueue_all);
  bool land(StepLoop& loop, bool wait);
  StepResult result(const StepRows& rows, const cuda::StepReport& report) const;
  // What is captured. step: of the launch.
  void enqueue(const StepRows& rows, size_t step, size_t place);
  void enqueue_divisor(const StepRows& rows, size_t step, size_t place);
  void begin(const DeviceBinding* b, const StepRows& rows, size_t micro,
             const cuda::StepEntry* entry, bool divides);
  template <class After>
  void run_part(Part part, DeviceBinding* b, After after);
  const Program& program_of(const DeviceBinding* b) const;
  const std::byte* enqueue_loss(const Micro& micro, size_t number, DeviceBinding* b);
  void enqueue_backward(size_t number, bool last, DeviceBinding* b);
  void sum_gradients(bool losses);
  void judge(const StepRows& rows, size_t step, const std::byte* loss);
  // Stages on several GPUs: pipeline.cpp.
  void enqueue_stages(const StepRows& rows, size_t step, size_t place);
  void forward_stage(const StageOp& op, DeviceBinding* b, size_t place);
  void backward_stage(const StageOp& op, DeviceBinding* b);
  void run_stage(Part part, const StageOp& op, DeviceBinding* b);
  void evaluate_in_stages(const StepInput& input);
  bool has_stage(int stage) const { return !stages_ || stages_->has(stage); }
  int last_stage() const { return session_.graph.stages() - 1; }
  bool reports_first() const;
  const ShardRows& own(const Micro& micro) const { return micro[static_cast<size_t>(shard_)]; }
  void wait();
  void prepare_evaluation();
  int64_t launch_evaluation(std::span<const uint32_t> order, const BatchesDone& done);
  int64_t tell_stages(std::span<const uint32_t> order, const BatchesDone& done);
  void evaluate(const StepInput& first, size_t batches);
  std::vector<int64_t> test_key(const StepRows& rows) const;
  bool warm_test(const StepRows& rows) const;
  cuda::CapturedGraph& test_graph(const StepRows& rows, size_t place, size_t batches);
  void enqueue_test(const StepRows& rows, size_t place);
  void keep_results(const DeviceBinding& b);
  const cuda::StepEntry* test_entry(int64_t batch) const {
    return reinterpret_cast<const cuda::StepEntry*>(test_entries_.data()) + batch;
  }
  cuda::TestSums* test_sums() const { return reinterpret_cast<cuda::TestSums*>(test_sums_.data()); }
  void look_for_trouble(const StepInput& input, Trouble& found);
  void look_at_stage(DeviceBinding& b, int stage, size_t micro, Trouble& found);
  void gather_weights();
  void share_buffers();
  void same_weights();
  bool finite(const TensorView& v);
  void give_up() noexcept;
  static void check_data(int32_t bad);
  double natural_divisor(int64_t samples) const;

  const Session& session_;
  Buffers buffers_;
  DeviceTeam gpus_;
  int shard_;  // of the batch, which this GPU computes
  DeviceShare share_;
  std::unique_ptr<cuda::DeviceApi> api_;
  StageClock* clock_;
  std::unique_ptr<cuda::Stream> stream_;
  std::unique_ptr<cuda::Event> done_;           // all that the stream was told
  cuda::Communicator* communicator_ = nullptr;  // the exchange's, if any
  WaitForGpu wait_for_;
  cuda::Memory workspace_, state_;
  cuda::DeviceContext context_;
  DeviceFlights flights_;
  DeviceUpdate update_;
  cuda::Memory activations_, sums_, target_weights_;
  std::vector<std::unique_ptr<DeviceBinding>> bindings_[whats];
  std::unique_ptr<DeviceFeed> feed_, test_feed_;
  Ahead* test_ahead_;
  cuda::Memory test_entries_;             // of each batch of the test set, as it is cut for all
  cuda::Memory test_entry_, test_sums_;   // of the batch that is computed; of those before
  std::unique_ptr<DeviceStages> stages_;  // null: all are on this GPU
  std::unique_ptr<DeviceGather> gather_;  // null: each computes the loss of its own rows
  // Null: there is one GPU. Gone before those two are, whose memory its calls may be waiting with.
  std::unique_ptr<DeviceExchange> exchange_;
  // By what it is of, the rows of the micro-batches (a last batch is smaller), the place that the
  // batch is taken from, and how many steps.
  std::map<std::vector<int64_t>, std::unique_ptr<cuda::CapturedGraph>> graphs_;
  std::vector<DeviceFlights::Step> gathered_;
  std::vector<OptimizerStep> formulas_;
  // Steps and batches of an evaluation, by what captured ones differ by, that were enqueued call by
  // call. Only then are they captured: a first call loads code, takes memory, and opens NCCL's
  // connections, each of which ends a capture.
  std::set<std::vector<int64_t>> warm_, warm_tests_;
  int stop_ = 0;
};

// The worker's own, on the GPU that the session gives it.
std::unique_ptr<DeviceExecutor> make_device_executor(const Session& session, const Buffers& buffers,
                                                     Team team, int worker, const GpuAccess& access,
                                                     const StepExecutor::Samples& samples,
                                                     StageClock* clock = nullptr);

}  // namespace dpt
