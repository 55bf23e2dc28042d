// Training and evaluation on CPU cores: one Executor for each worker. It prepares all kernels up
// front and then executes the plan's lists; a training step allocates no memory and makes no system
// calls except to wait. What the instructions do is in the classes that it owns.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/generator.h"
#include "comm/team.h"
#include "engine/cpu/backward_progress.h"
#include "engine/cpu/batch_input.h"
#include "engine/cpu/binding_table.h"
#include "engine/cpu/dropout_masks.h"
#include "engine/cpu/evaluation.h"
#include "engine/cpu/gradient_meter.h"
#include "engine/cpu/gradient_norm.h"
#include "engine/cpu/host_exchange.h"
#include "engine/cpu/pipeline.h"
#include "engine/cpu/shard_gradients.h"
#include "engine/cpu/shard_losses.h"
#include "engine/cpu/stage_posts.h"
#include "engine/cpu/sync_points.h"
#include "engine/cpu/update.h"
#include "engine/cpu/weight_average.h"
#include "engine/cpu/worker.h"
#include "engine/step_executor.h"

namespace dpt {

// All workers of a run make the same calls in the same order. Thread: the worker's. REQUIRES: no
// other executor of this worker has used its team, whose posts count from the first step on.
class Executor : public StepExecutor {
 public:
  // masks: PyTorch's generator, for the first worker if the plan draws masks; else null.
  // clock, trace: this worker's measurements; null: none.
  // worker: its number over all hosts. link: to other hosts, on the leader of each, which is the
  // first worker of its team; else null. All references and pointers must outlive the executor.
  Executor(const Session& session, const Buffers& buffers, Team team, int worker, Generator* masks,
           const Samples& samples, PlanStepClock* clock = nullptr, Trace* trace = nullptr,
           Link* link = nullptr);

  void run(StepLoop& loop) override {
    StepInput input;
    while (loop.next(input)) loop.done(input, step(input));
  }
  Evaluation evaluate(const BatchesDone& done) override { return evaluation_->run(done); }
  NonFiniteReport find_non_finite(const StepInput& input) override;
  void resume(int64_t updates, const GradientScaler::State&) override { update_.resume(updates); }
  void receive_start() override;
  void gather() override;
  void own_states(const EachState& f) override { update_.each_own_state(f); }
  void swap_average() override;
  GradientMeasures measures(const StepInput& input) override {
    return meter_.measures(input, losses_.divisor());
  }
  double data_seconds() const override { return worker_.clocks.seconds(WaitClock::data); }
  double barrier_seconds() const override { return worker_.clocks.seconds(WaitClock::barriers); }

 private:
  // Steps of the plan with the same actor, see each_run() in plan.h.
  using StepRun = std::span<const PlanStep>;
  StepResult step(const StepInput& input);
  void pass(StepRun run, size_t micro, const StepInput& input);
  void execute(StepRun run, size_t micro, const StepInput& input);
  void run_shards(StepRun run, size_t micro, const StepInput& input);
  void run_with_sync_points(StepRun run, size_t micro, const StepInput& input);
  void exchange_with_hosts(StepRun run, const StepInput& input);
  void act(const PlanStep& s, int group, size_t micro, const StepInput& input);
  void do_step(const PlanStep& s, int group, size_t micro, const StepInput& input);
  void load(int group, size_t micro, const StepInput& input);
  void run_part(const PlanStep& s, int group, size_t micro, const StepInput& input);
  void update(const PlanStep& s, const StepInput& input);
  void sum(const PlanStep& s, const StepInput& input);
  void decide(const StepInput& input);

  CpuWorker worker_;
  std::optional<HostExchange> exchange_;  // empty: one host, or not the leader
  BindingTable bindings_;
  BackwardProgress backward_;
  SyncPoints sync_points_;
  CpuBatchInput input_;
  std::optional<DropoutMasks> masks_;  // empty: this worker draws none
  ShardLosses losses_;
  ShardGradients gradients_;
  GradientMeter meter_;
  GradientNorm norm_;
  CpuUpdate update_;
  WeightAverage average_;
  StagePosts posts_;
  CpuPipeline pipeline_;
  std::optional<CpuEvaluation> evaluation_;              // empty: there is no evaluated set
  std::vector<StepRun> prologue_, micro_, update_runs_;  // of the plan
  double clip_scale_ = 1;                                // of this step
  StepResult result_;
};

}  // namespace dpt
