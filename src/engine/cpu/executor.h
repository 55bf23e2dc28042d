// Training and evaluation on CPU cores: one Executor for each worker. It binds the plan to the
// worker's memory and prepares all kernels up front; a training step allocates no memory and makes
// no system calls except to wait.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/generator.h"
#include "comm/team.h"
#include "engine/compressed.h"
#include "engine/cpu/binding.h"
#include "engine/own_states.h"
#include "engine/plan_step_clock.h"
#include "engine/prefetch_stream.h"
#include "engine/step_executor.h"
#include "engine/trace.h"
#include "engine/wait_clock.h"
#include "graph/optimizer_step.h"
#include "session/arenas.h"
#include "session/buffers.h"
#include "session/measure_layout.h"
#include "session/session.h"
#include "session/update_partition.h"

namespace dpt {

// All workers of a run make the same calls in the same order. Thread: the worker's.
class Executor : public StepExecutor {
 public:
  // masks: PyTorch's generator, for the first worker if the plan draws masks; else null.
  // clock, trace: this worker's measurements; null: none.
  // All references and pointers must outlive the executor.
  Executor(const Session& session, const Buffers& buffers, Team team, int worker, Generator* masks,
           const Samples& samples, PlanStepClock* clock = nullptr, Trace* trace = nullptr);

  void run(StepLoop& loop) override {
    StepInput input;
    while (loop.next(input)) loop.done(input, step(input));
  }

  Evaluation evaluate(const BatchesDone& done) override;

  NonFiniteReport find_non_finite(const StepInput& input) override;

  void resume(int64_t updates, const GradientScaler::State&) override { updates_ = updates; }
  void own_states(const EachState& f) override;
  void swap_average() override;
  GradientMeasures measures(const StepInput& input) override;
  double data_seconds() const override { return wait_clock_.seconds(WaitClock::data); }
  double barrier_seconds() const override { return wait_clock_.seconds(WaitClock::barriers); }

 private:
  StepResult step(const StepInput& input);
  static constexpr int kTrain = 0;
  // Later micro-batches: gradients are added to those of earlier ones.
  static constexpr int kTrainMore = 1;
  static constexpr int kTest = 2;
  // The last micro-batch, if it has a program of its own (session.last_programs).
  static constexpr int kTrainLast = 3;
  static constexpr int kKinds = 4;
  int program_kind(int micro) const {
    if (micro == 0) return kTrain;
    const bool last =
        !session_.last_programs.empty() && micro + 1 == session_.batches->accumulate();
    return last ? kTrainLast : kTrainMore;
  }
  // The bindings of one shard group and one of the kinds above, one per row count: two or three.
  using BySize = std::vector<std::unique_ptr<Binding>>;
  using Micro = std::vector<ShardRows>;
  // The binding for the rows that the group has in `micro`, or null if it has none. `chunk`: the
  // number of the micro-batch, whose activations have memory of their own if several are in flight.
  Binding* binding(int group, const Micro& micro, int kind, int chunk = 0);
  void bind(int group, int kind, int chunk, const std::map<ShardGroupRows, Program>& programs);
  std::vector<int> partners_at_sync_points() const;
  // Steps of the plan with the same actor, see each_run() in plan.h.
  using StepRun = std::span<const PlanStep>;
  // Calls f() and records its time in the trace, if there is one.
  template <class F>
  void traced(const PlanStep& s, int chunk, F f) {
    if (memory_watch) memory_watch->begin(worker_, s);
    if (!trace_) return f();
    const double begin = now_s();
    f();
    trace_->add(s, chunk, static_cast<int64_t>(step_), begin);
  }
  void pass(StepRun run, int micro, const StepInput& input);
  static bool happens(const PlanStep& s, int micro, const StepInput& input);
  void barrier();
  void execute(StepRun run, int micro, const StepInput& input);
  void run_with_sync_points(StepRun run, int micro, const StepInput& input);
  // Stages on several devices: pipeline.cpp.
  void run_pipeline(const StepInput& input);
  void wait_for(const PlanStep& s);
  void do_stage_step(const PlanStep& s, const StepInput& input);
  void load_stage(const PlanStep& s, const StepInput& input);
  void run_stage_op(const PlanStep& s, const StepInput& input);
  void run_stage(Part part, int stage, const Micro& micro, int kind, int chunk);
  void evaluate_in_stages(std::span<const uint32_t> order, const BatchesDone& done);
  void wait_for_test(int stage, int64_t batch);
  int last_stage() const { return session_.graph.stages() - 1; }
  bool has_stage(int stage) const {
    return session_.graph.stage_device[static_cast<size_t>(stage)] == device_;
  }
  void act(const PlanStep& s, int group, int micro, const StepInput& input);
  void do_step(const PlanStep& s, int group, int micro, const StepInput& input);
  void run_of_shards(Part part, int group, int micro, const StepInput& input);
  void load_inputs(const BatchLoader& loader, std::span<const uint32_t> rows, uint64_t epoch,
                   const std::byte* staged, Binding& b) const;
  static void load_targets(const BatchLoader& loader, std::span<const uint32_t> rows, Binding& b);
  // Runs a part that has sync points (Note [sync points] in program.h), piece by piece, for all of
  // the worker's shard groups. Calls run(group, binding, piece) for each piece.
  template <class Run>
  void run_in_pieces(int sync_points, Part part, const Micro& micro, int kind, Run run,
                     int stage = 0, int chunk = 0);
  void wait_at_sync_point();
  void sum_at_sync_point(int group, const Binding::SyncPoint& sync_point, const Micro& micro);
  void begin_evaluation(int group, const Micro& micro, std::span<const uint32_t> order,
                        int64_t batch, int slot = 0);
  void end_evaluation(int group, const Micro& micro, int slot = 0);
  void check_finite(int micro, const StepInput& input);
  std::span<const uint32_t> samples(int group, const Micro& micro,
                                    std::span<const uint32_t> order) const;
  // ahead: the rank's prefetched samples; null: the worker reads the samples itself.
  Binding* load(int group, const StepInput& input, int micro, int kind, PrefetchStream* prefetch);
  void load_first(Binding& b, int group, const StepInput& input, int micro,
                  PrefetchStream* prefetch);
  void load_last(Binding& b, int group, const StepInput& input, int micro);
  void set_context(Binding& b, int group, const StepInput& input, int micro);
  void prologue(int group, int micro, const StepInput& input);
  void loss(int group, int micro, const StepInput& input);
  void run_part(Part part, int group, int micro, const StepInput& input);
  void finish_gradients(int group, int micro, const StepInput& input) const;
  void finish_gradients(int group, int micro, const StepInput& input, UpdateRange range) const;
  void draw_masks(int micro, const StepInput& input);
  void sum_divisor(const StepInput& input);
  void sum_loss(const StepInput& input);
  void compress(int group);
  void sum_squares(const StepInput& input);
  void measure_parameters();
  void decide(const StepInput& input);
  void update(const StepInput& input);
  void update_stored(const UpdatePiece& piece, UpdateArgs& args, const StepInput& input);
  void update_fused(const UpdatePiece& piece, UpdateArgs& args, const StepInput& input);
  void apply(const UpdateArgs& args, const StepInput& input) const;
  void update_range(const UpdateArgs& args, const StepInput& input) const;
  float* state_of(int buffer, size_t piece) {
    return own_states_ ? own_states_->state(buffer, piece) : buffers_.state(buffer);
  }
  void watch_gradients(UpdateRange range, int shards) const;
  void make_rows(const UpdatePiece& piece, int64_t begin, int64_t end);
  double sum(double ShardResult::*field, uint64_t step, Rows shards);
  double natural_divisor(int64_t samples) const;

  const Session& session_;
  Buffers buffers_;
  Arenas arenas_;
  Team team_;
  int worker_;
  int device_;  // index in the replica
  Generator* masks_;
  Samples samples_;
  PlanStepClock* clock_;
  Trace* trace_;
  uint64_t step_ = 0;  // number of the current step, for the trace
  // Indices of the shard groups that this worker computes, and whose loss it computes.
  std::vector<int> own_, own_loss_;
  std::vector<const float*> gradients_;  // [shards]
  std::vector<UpdatePiece> share_;
  // The states of `share_`; empty: they are in the buffers.
  std::optional<OwnStates> own_states_;
  std::optional<CompressedGradients> compressed_;  // empty: gradients are read in f32
  std::vector<float> rows_;                        // rows of a fused gradient
  std::vector<float*> mask_rows_;                  // [samples] of the mask being drawn
  // Bindings of the shard groups that have samples in this step.
  std::vector<Binding*> with_rows_;
  std::vector<std::vector<UpdateRange>> stage_stored_;  // [stages] stored gradients of each
  std::vector<std::byte> later_;  // scratch for the gradients of later micro-batches
  int slot_count_ = 1;            // number of slots; chunk c uses the binding c % slot_count_
  std::vector<BySize> bindings_;  // [(group * kKinds + kind) * slot_count_ + chunk % slot_count_]
  std::vector<std::string> state_names_;
  std::vector<double> sums_;  // [shards] scratch of sum()
  std::vector<double*> sum_parts_;
  // false: each replica has one worker, so nobody waits at sync points
  bool waits_at_sync_points_ = false;
  std::vector<int> partners_;      // workers that wait at sync points together; empty: all workers
  std::vector<uint32_t> posted_;   // [devices of a replica] posts of each up to the current pass
  std::vector<double> sync_sums_;  // [shards of a replica] scratch of sum_cut()
  MeasureLayout measure_layout_;
  std::vector<StepRun> prologue_, micro_runs_, update_runs_;  // of the plan
  WaitClock wait_clock_;                                      // of the first worker
  int64_t updates_ = 0;                                       // made before this step
  float* average_ = nullptr;  // of the current piece, indexed like the flat buffers; null: none
  float average_rate_ = 1;    // of this step
  double divisor_ = 1, clip_scale_ = 1;
  bool summed_ = false;  // gradient(0) already holds the sum over shards
  StepResult result_;
};

}  // namespace dpt
