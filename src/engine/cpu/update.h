// The optimizer update of one worker's share of the parameters, and the states and averages of that
// share. In the same pass it sums gradients over shards, or computes fused gradients (program.h,
// Note [fused gradients]).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backend/cpu/update.h"
#include "engine/cpu/binding_table.h"
#include "engine/cpu/shard_gradients.h"
#include "engine/cpu/worker.h"
#include "engine/own_states.h"
#include "engine/step_executor.h"

namespace dpt {

// Thread: the worker's. REQUIRES: all references outlive it.
class CpuUpdate {
 public:
  CpuUpdate(const CpuWorker& worker, const BindingTable& bindings, ShardGradients& gradients);

  void resume(int64_t updates) { updates_ = updates; }  // made before the first step
  // Updates the share, or with several hosts its part of a bucket, where bucket 0 is the first of a
  // step. clip_scale: factor of the gradients, besides the loss scale.
  void run(const StepInput& input, double clip_scale, int bucket = -1);

  // With `shard: optimizer`: as StepExecutor::own_states().
  void each_own_state(const StepExecutor::EachState& f);
  // Exchanges the weights of the share with their averages. REQUIRES: barriers before and after.
  void swap_average();

 private:
  void find_rows(const StepInput& input);
  // Calls f(args) for each range of the piece, with its stored gradients.
  template <class F>
  void each_stored_range(const UpdatePiece& piece, UpdateArgs& args, F f);
  void update_stored(const UpdatePiece& piece, UpdateArgs& args, const StepInput& input);
  void update_fused(const UpdatePiece& piece, UpdateArgs& args, const StepInput& input);
  void update_matrix(const UpdatePiece& piece, UpdateArgs& args, const StepInput& input);
  void make_rows(const UpdatePiece& piece, int64_t begin, int64_t end);
  void apply(const UpdateArgs& args, const StepInput& input) const;
  void round_if_pure(const UpdateArgs& args) const;  // the weights
  void average(const UpdateArgs& args) const;
  void update_range(const UpdateArgs& args, const StepInput& input) const;
  float* state_of(int buffer, size_t piece) {
    return own_states_ ? own_states_->state(buffer, piece) : worker_.buffers.state(buffer);
  }

  const CpuWorker& worker_;
  const BindingTable& bindings_;
  ShardGradients& gradients_;
  std::vector<std::string> state_names_;
  std::optional<OwnStates> own_states_;  // of the share; empty: states are in the buffers
  std::vector<float> matrix_;            // workspace of the largest matrix of the share
  std::vector<float> rows_;              // rows of a fused gradient
  std::vector<Binding*> with_rows_;      // of the shard groups that have samples in this step
  int64_t updates_ = 0;                  // made before this step
  float* average_ = nullptr;  // of the current piece, indexed like the flat buffers; null: none
  float average_rate_ = 1;    // of this step
};

}  // namespace dpt
