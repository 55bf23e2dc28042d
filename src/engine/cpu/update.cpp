#include "engine/cpu/update.h"

#include <algorithm>
#include <span>

#include "backend/cpu/half_kernels.h"
#include "backend/cpu/matrix_update.h"
#include "backend/cpu/scratch.h"
#include "backend/cpu/simd/simd.h"
#include "graph/formulas/average.h"

namespace dpt {

CpuUpdate::CpuUpdate(const CpuWorker& worker, const BindingTable& bindings,
                     ShardGradients& gradients)
    : worker_(worker),
      bindings_(bindings),
      gradients_(gradients),
      state_names_(
          worker.session.settings.optimizer->states(worker.session.settings.spec.optimizer.settings,
                                                    worker.session.settings.cycles_momentum())),
      matrix_(matrix_workspace(worker.share, worker.session.parameter_groups.matrices)),
      rows_(tile_elements(worker.share)) {
  if (!matrix_.empty()) gemm_workspace();
  const Session& session = worker.session;
  with_rows_.reserve(session.model.shard_groups.size());
  if (!session.devices.exchange.shard_states) return;
  own_states_.emplace(worker.share, session.settings.states(),
                      static_cast<float>(session.settings.optimizer->initial_state(
                          session.settings.spec.optimizer.settings)));
  if (!session.settings.averages()) return;
  float* const weights = worker.buffers.weights();  // averages start from these
  for (size_t p = 0; p < worker.share.size(); ++p)
    std::copy(weights + worker.share[p].begin, weights + worker.share[p].end,
              own_states_->state(session.settings.average_state(), p) + worker.share[p].begin);
}

// Computes rows [begin, end) of the gradient that `piece` belongs to. Each element is one chain of
// additions over the samples of all shards, in their order (Note [fused gradients]).
void CpuUpdate::make_rows(const UpdatePiece& piece, int64_t begin, int64_t end) {
  for (size_t i = 0; i < with_rows_.size(); ++i)
    with_rows_[i]->run_rows(static_cast<size_t>(piece.gradient_instruction), begin, end, i > 0,
                            rows_.data());
}

void CpuUpdate::find_rows(const StepInput& input) {
  with_rows_.clear();
  if (rows_.empty()) return;
  for (int g = 0; g < worker_.shard_groups(); ++g) {
    if (!worker_.sums(g)) continue;
    if (Binding* b = bindings_.find(g, input.rows->micro[0], ProgramKind::train))
      with_rows_.push_back(b);
  }
}

void CpuUpdate::run(const StepInput& input, double clip_scale, int bucket) {
  find_rows(input);
  const Session& session = worker_.session;
  UpdateArgs args;
  args.weight = worker_.buffers.weights();
  args.grad_scale = static_cast<float>(clip_scale / input.scale);
  args.clip_value = static_cast<float>(session.settings.spec.clip.value.value_or(0));
  const std::optional<double>& decay = session.settings.spec.ema;
  if (bucket <= 0) {
    if (decay) average_rate_ = formula::average_rate<float>(*decay, updates_ == 0);
    ++updates_;
  }
  for (size_t p = 0; p < worker_.share.size(); ++p) {
    if (worker_.share[p].bucket != bucket) continue;
    for (size_t i = 0, buffer = 0; i < state_names_.size(); ++i) {
      if (state_names_[i].empty()) continue;  // a slot without a name has no buffer
      args.state[i] = state_of(static_cast<int>(buffer++), p);
    }
    if (session.settings.averages()) average_ = state_of(session.settings.average_state(), p);
    if (worker_.share[p].matrix >= 0)
      update_matrix(worker_.share[p], args, input);
    else if (worker_.share[p].gradient_instruction < 0)
      update_stored(worker_.share[p], args, input);
    else
      update_fused(worker_.share[p], args, input);
  }
}

void CpuUpdate::each_own_state(const StepExecutor::EachState& f) {
  if (!own_states_) return;
  for (int i = 0; i < worker_.session.settings.states(); ++i)
    for (size_t p = 0; p < worker_.share.size(); ++p)
      f(i, worker_.share[p].begin,
        {own_states_->state(i, p) + worker_.share[p].begin,
         worker_.share[p].end - worker_.share[p].begin});
}

void CpuUpdate::swap_average() {
  float* const weights = worker_.buffers.weights();
  for (size_t p = 0; p < worker_.share.size(); ++p) {
    const UpdatePiece& piece = worker_.share[p];
    std::swap_ranges(weights + piece.begin, weights + piece.end,
                     state_of(worker_.session.settings.average_state(), p) + piece.begin);
  }
}

// Averages follow the update tile by tile, while the weights are in the cache.
void CpuUpdate::apply(const UpdateArgs& args, const StepInput& input) const {
  if (average_ == nullptr) return update_range(args, input);
  constexpr size_t kTile = 4096;
  UpdateArgs tile = args;
  for (size_t at = args.begin; at < args.end; at = tile.end) {
    tile.begin = at;
    tile.end = std::min(args.end, at + kTile);
    update_range(tile, input);
    average(tile);
  }
}

void CpuUpdate::average(const UpdateArgs& args) const {
  if (average_ == nullptr) return;
  const RunPrecision& precision = worker_.session.precision;
  float* const average = average_ + args.begin;
  const size_t count = args.end - args.begin;
  if (worker_.session.settings.spec.ema)
    simd_kernels().average(average, args.weight + args.begin, average_rate_, count);
  if (precision.policy.level == PrecisionPolicy::Level::pure)
    round_weights(precision.policy.half, average, count);
}

// Updates elements [args.begin, args.end), each with the formula of its parameter group.
void CpuUpdate::update_range(const UpdateArgs& args, const StepInput& input) const {
  UpdateArgs part = args;
  worker_.session.parameter_groups.each(
      args.begin, args.end, [&](size_t begin, size_t end, int group) {
        part.begin = begin;
        part.end = end;
        run_update(input.update[static_cast<size_t>(group)], part);
      });
  round_if_pure(args);
}

void CpuUpdate::round_if_pure(const UpdateArgs& args) const {
  const PrecisionPolicy& policy = worker_.session.precision.policy;
  if (policy.level == PrecisionPolicy::Level::pure)
    round_weights(policy.half, args.weight + args.begin, args.end - args.begin);
}

template <class F>
void CpuUpdate::each_stored_range(const UpdatePiece& piece, UpdateArgs& args, F f) {
  gradients_.each_range(
      piece, [&](size_t begin, size_t end, std::span<const float* const> shards, size_t first) {
        args.begin = begin;
        args.end = end;
        args.first = first;
        args.shards = shards.data();
        args.shard_count = static_cast<int>(shards.size());
        f(args);
      });
}

void CpuUpdate::update_stored(const UpdatePiece& piece, UpdateArgs& args, const StepInput& input) {
  each_stored_range(piece, args, [&](const UpdateArgs& part) { apply(part, input); });
}

// The gradient becomes a direction in the workspace, in place of a second state, then the direction
// becomes orthogonal.
void CpuUpdate::update_matrix(const UpdatePiece& piece, UpdateArgs& args, const StepInput& input) {
  const UpdatedMatrix& m =
      worker_.session.parameter_groups.matrices[static_cast<size_t>(piece.matrix)];
  const OptimizerStep& step = input.update[static_cast<size_t>(m.group)];
  float* const direction = matrix_.data();
  args.state[1] = counted_from(direction, piece.begin);
  each_stored_range(piece, args, [&](const UpdateArgs& part) { run_update(step, part); });
  args.begin = piece.begin;
  args.end = piece.end;
  const auto& formula = std::get<formula::Muon<double>>(step);
  const auto scalars = rounded<float>(formula);
  make_orthogonal(scalars, direction, m.rows, m.columns, direction + m.elements());
  const auto size = static_cast<float>(m.transposed ? step_size(formula, m.columns, m.rows)
                                                    : step_size(formula, m.rows, m.columns));
  float* const weight = args.weight + piece.begin;
  for (size_t i = 0; i < m.elements(); ++i)
    weight[i] = weight[i] * scalars.keep - size * direction[i];
  round_if_pure(args);
  average(args);
}

void CpuUpdate::update_fused(const UpdatePiece& piece, UpdateArgs& args, const StepInput& input) {
  const float* const rows_made = rows_.data();
  args.shards = &rows_made;
  args.shard_count = 1;
  const int64_t height = rows_of_tile(piece.columns);
  for (int64_t r = 0; r < piece.rows; r += height) {
    const int64_t rows = std::min(height, piece.rows - r);
    make_rows(piece, piece.first_row + r, piece.first_row + r + rows);
    args.begin = args.first = piece.begin + static_cast<size_t>(r * piece.columns);
    args.end = args.begin + static_cast<size_t>(rows * piece.columns);
    apply(args, input);
  }
}

}  // namespace dpt
