// One worker's part of a run: the plan bound to its memory and prepared kernels. A steady step
// allocates nothing and makes no system call but for waiting.
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
#include "engine/prefetch_stream.h"
#include "engine/stage_clock.h"
#include "engine/step_executor.h"
#include "engine/trace.h"
#include "graph/optimizer_step.h"
#include "session/arenas.h"
#include "session/buffers.h"
#include "session/session.h"
#include "session/update_share.h"

namespace dpt {

// All workers make the same calls in the same order. Thread: the worker's own.
class Executor : public StepExecutor {
 public:
  // masks: torch's generator, for the first worker where the plan draws masks; else null.
  // clock: of this worker, where its stages are to be measured; trace: where what it does is to be
  // written down; else null.
  Executor(const Session& session, const Buffers& buffers, Team team, int worker, Generator* masks,
           const Samples& samples, StageClock* clock = nullptr, Trace* trace = nullptr);

  void run(StepLoop& loop) override {
    StepInput input;
    while (loop.next(input)) loop.done(input, step(input));
  }

  // Over the whole test set, every sample once. REQUIRES: session.test.
  Evaluation evaluate(const BatchesDone& done) override;

  // After a step that was not finite: computes its forward part again and looks at every result.
  // The first place found, the same on every worker.
  Finding find_trouble(const StepInput& input) override;

  void own_states(const EachState& f) override;

 private:
  StepResult step(const StepInput& input);
  static constexpr int kTrain = 0;
  static constexpr int kTrainMore = 1;  // gradients are added to those of earlier micro-batches
  static constexpr int kTest = 2;
  static constexpr int kTrainLast = 3;  // the last one, by session.last_programs
  static constexpr int kKinds = 4;
  int which(int micro) const {
    if (micro == 0) return kTrain;
    const bool last =
        !session_.last_programs.empty() && micro + 1 == session_.batches->accumulate();
    return last ? kTrainLast : kTrainMore;
  }
  // Of one group of shards and one of these, by their rows: there are two or three.
  using BySize = std::vector<std::unique_ptr<Binding>>;
  using Micro = std::vector<ShardRows>;
  // Of micro-batch `chunk`, whose memory differs where several are in flight. Null: the group has
  // no rows.
  Binding* binding(int group, const Micro& micro, int what, int chunk = 0);
  void bind(int group, int what, int chunk, const std::map<GroupRows, Program>& programs);
  std::vector<int> partners_at_cuts() const;
  // f(), written down where there is a trace.
  template <class F>
  void traced(TraceEvent::Kind kind, int stage, int chunk, F f) {
    if (!trace_) return f();
    const double begin = now_s();
    f();
    trace_->add(kind, stage, chunk, static_cast<int64_t>(step_), begin);
  }
  void pass(const Stage& stage, int micro, const StepInput& input, bool meets);
  void meet();
  void run(const Stage& stage, int micro, const StepInput& input);
  void run_cut(const Stage& stage, int micro, const StepInput& input);
  // Stages on several devices: stages.cpp.
  void run_pipeline(const StepInput& input);
  void wait_for(const StageOp& op);
  void forward_stage(const StageOp& op, const StepInput& input);
  void backward_stage(const StageOp& op, const StepInput& input);
  void run_stage(Part part, int stage, const Micro& micro, int what, int chunk);
  void evaluate_in_stages(std::span<const uint32_t> order, const BatchesDone& done);
  void wait_for_test(int stage, int64_t batch);
  int last_stage() const { return session_.graph.stages() - 1; }
  bool has_stage(int stage) const {
    return session_.graph.stage_device[static_cast<size_t>(stage)] == device_;
  }
  void act(Action action, int group, int micro, const StepInput& input);
  void do_action(Action action, int group, int micro, const StepInput& input);
  void feed_inputs(const Feeder& feeder, std::span<const uint32_t> rows, uint64_t epoch,
                   const std::byte* staged, Binding& b) const;
  static void feed_targets(const Feeder& feeder, std::span<const uint32_t> rows, Binding& b);
  // A part with cuts (program.h, note [cuts]), piece by piece for all own groups. run: what is done
  // with a piece, given the binding.
  template <class Run>
  void run_in_pieces(int cuts, Part part, const Micro& micro, int what, Run run, int stage = 0,
                     int chunk = 0);
  void meet_at_cut();
  void sum_cut(int group, const Binding::Cut& cut, const Micro& micro);
  void begin_evaluation(int group, const Micro& micro, std::span<const uint32_t> order,
                        int64_t batch, int slot = 0);
  void end_evaluation(int group, const Micro& micro, int slot = 0);
  void look_for_trouble(int micro, const StepInput& input);
  std::span<const uint32_t> samples(int group, const Micro& micro,
                                    std::span<const uint32_t> order) const;
  // ahead: null: samples that are not in memory are made here and now.
  Binding* feed(int group, const StepInput& input, int micro, int what, Ahead* ahead);
  void feed_first(Binding& b, int group, const StepInput& input, int micro, Ahead* ahead);
  void feed_last(Binding& b, int group, const StepInput& input, int micro);
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
  void sum_squares();
  void update(const StepInput& input);
  void update_stored(const UpdatePiece& piece, UpdateArgs& args, const StepInput& input);
  void update_fused(const UpdatePiece& piece, UpdateArgs& args, const StepInput& input);
  void apply(const UpdateArgs& args, const StepInput& input) const;
  void make_rows(const UpdatePiece& piece, int64_t begin, int64_t end);
  double sum(double ShardResult::*what, uint64_t step, Rows shards);
  double natural_divisor(int64_t samples) const;

  const Session& session_;
  Buffers buffers_;
  Arenas arenas_;
  Team team_;
  int worker_;
  int device_;  // in its replica
  Generator* masks_;
  Samples samples_;
  StageClock* clock_;
  Trace* trace_;
  uint64_t step_ = 0;                    // for the trace
  std::vector<int> own_, own_loss_;      // groups
  std::vector<const float*> gradients_;  // of all shards
  std::vector<UpdatePiece> share_;
  std::optional<OwnStates> own_states_;            // of `share_`; else they are in the buffers
  std::optional<CompressedGradients> compressed_;  // what is read of the shards' gradients
  std::vector<float> rows_;                        // of a fused gradient
  std::vector<float*> mask_rows_;                  // each sample's part of the mask being drawn
  std::vector<Binding*> with_rows_;                // of the groups that have samples in this step
  std::vector<std::vector<UpdateRange>> stage_stored_;  // those of each stage
  std::vector<std::byte> later_;  // where gradients of later micro-batches are made
  int turns_ = 1;                 // chunks after which bindings come round again
  std::vector<BySize> bindings_;  // [(group * kKinds + which) * turns_ + chunk % turns_]
  std::vector<std::string> state_names_;
  std::vector<double> sums_;  // of all shards, for the tree
  std::vector<double*> sum_parts_;
  bool meets_at_cuts_ = false;    // else every replica has one worker
  std::vector<int> partners_;     // who meets there, where it is not all
  std::vector<uint32_t> posted_;  // by each device: the pieces of work up to this pass
  std::vector<double> cut_sums_;  // of the shards of a replica, for the tree
  double divisor_ = 1, clip_scale_ = 1;
  bool summed_ = false;  // gradient(0) holds the sum already
  StepResult result_;
};

}  // namespace dpt
