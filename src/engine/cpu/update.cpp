// Executor: the end of a training step. Sums the gradients of all shards, clips them, and makes the
// optimizer update of this worker's share of the parameters.
#include "backend/cpu/update.h"

#include <algorithm>
#include <cmath>

#include "backend/cpu/half_kernels.h"
#include "backend/cpu/simd/simd.h"
#include "engine/cpu/executor.h"
#include "engine/cpu/measure.h"
#include "graph/formulas/average.h"

namespace dpt {

void Executor::compress(int group) {
  const Rows shards = session_.shard_groups[static_cast<size_t>(group)];
  for (int64_t s = shards.begin; s < shards.end; ++s)
    for (int stage = 0; stage <= last_stage(); ++stage)
      if (has_stage(stage))
        for (const UpdateRange& range : stage_stored_[static_cast<size_t>(stage)])
          compressed_->write(static_cast<int>(s), range);
}

// Reports to tests that the gradients of the first `shards` shards in `range` are read.
void Executor::watch_gradients(UpdateRange range, int shards) const {
  if (!memory_watch) return;
  for (int s = 0; s < shards; ++s)
    if (compressed_ && !summed_)
      memory_watch->read(buffers_.halves(s) + range.begin, range.count() * sizeof(uint16_t));
    else
      memory_watch->read(buffers_.gradient(s) + range.begin, range.count() * sizeof(float));
}

// The norm is summed over chunks of a fixed size, so its bits do not depend on the number of
// workers.
void Executor::sum_squares(const StepInput& input) {
  const auto workers = static_cast<size_t>(session_.topology.total_workers());
  const auto me = static_cast<size_t>(worker_);
  const size_t chunks = buffers_.chunks(), elements = buffers_.sizes().stored;
  const size_t first = chunks * me / workers, last = chunks * (me + 1) / workers;
  float* total = buffers_.gradient(0);
  const auto shards = static_cast<size_t>(session_.topology.shards);
  const bool by_shard = input.measured && measure_layout_.by_shard();
  // The sum overwrites the first shard's gradients.
  for (size_t s = 0; by_shard && s < shards; ++s)
    measure_chunks(buffers_, measure_layout_, buffers_.gradient(static_cast<int>(s)), s, first,
                   last);
  const UpdateRange range{std::min(elements, first * Buffers::kChunk),
                          std::min(elements, last * Buffers::kChunk)};
  watch_gradients(range, session_.topology.shards);
  if (compressed_)
    compressed_->sum(range, total + range.begin);
  else
    simd_kernels().sum_shards_range(total, gradients_.data(), session_.topology.shards, range.begin,
                                    range.end);
  norm_partials(session_.spec.clip.norm_type, total, elements, first, last, buffers_.squares());
  if (by_shard) measure_chunks(buffers_, measure_layout_, total, shards, first, last);
  summed_ = true;
}

// Computes rows [begin, end) of the gradient that `piece` belongs to. Each element is one chain of
// additions over the samples of all shards, in their order (Note [fused gradients]).
void Executor::make_rows(const UpdatePiece& piece, int64_t begin, int64_t end) {
  for (size_t i = 0; i < with_rows_.size(); ++i)
    with_rows_[i]->run_rows(static_cast<size_t>(piece.gradient_instruction), begin, end, i > 0,
                            rows_.data());
}

void Executor::decide(const StepInput& input) {
  if (!summed_) return;
  const ClipSpec& clip = session_.spec.clip;
  if (input.measured) measure_parameters();
  if (memory_watch) memory_watch->read(buffers_.squares(), buffers_.chunks() * sizeof(double));
  result_.norm = norm_total(clip.norm_type, buffers_.squares(), buffers_.chunks()) / input.scale;
  result_.overflowed = session_.scaler.on && !std::isfinite(result_.norm);
  if (clip.max_norm) clip_scale_ = std::min(1.0, *clip.max_norm / (result_.norm + 1e-6));
}

void Executor::update(const StepInput& input) {
  if (result_.overflowed) return;
  const ClipSpec& clip = session_.spec.clip;
  with_rows_.clear();
  if (!rows_.empty())
    for (int g = 0; g < static_cast<int>(session_.shard_groups.size()); ++g)
      if (Binding* b = binding(g, input.rows->micro[0], kTrain)) with_rows_.push_back(b);
  UpdateArgs args;
  args.weight = buffers_.weights();
  args.grad_scale = static_cast<float>(clip_scale_ / input.scale);
  args.clip_value = static_cast<float>(clip.value.value_or(0));
  const std::optional<double>& decay = session_.spec.ema;
  if (decay) average_rate_ = formula::average_rate<float>(*decay, updates_ == 0);
  ++updates_;
  for (size_t p = 0; p < share_.size(); ++p) {
    for (size_t i = 0, buffer = 0; i < state_names_.size(); ++i) {
      if (state_names_[i].empty()) continue;  // a slot without a name has no buffer
      args.state[i] = state_of(static_cast<int>(buffer++), p);
    }
    if (decay) average_ = state_of(session_.average_state(), p);
    if (share_[p].gradient_instruction < 0)
      update_stored(share_[p], args, input);
    else
      update_fused(share_[p], args, input);
  }
}

void Executor::own_states(const EachState& f) {
  if (!own_states_) return;
  for (int i = 0; i < session_.states(); ++i)
    for (size_t p = 0; p < share_.size(); ++p)
      f(i, share_[p].begin,
        {own_states_->state(i, p) + share_[p].begin, share_[p].end - share_[p].begin});
}

// Exchanges the weights with their averages in this worker's share.
void Executor::swap_average() {
  team_.barrier(worker_);
  for (size_t p = 0; p < share_.size(); ++p) {
    const UpdatePiece& piece = share_[p];
    float* const weights = buffers_.weights();
    std::swap_ranges(weights + piece.begin, weights + piece.end,
                     state_of(session_.average_state(), p) + piece.begin);
  }
  team_.barrier(worker_);
}

// Averages follow the update tile by tile, while the weights are in the cache.
void Executor::apply(const UpdateArgs& args, const StepInput& input) const {
  if (!session_.spec.ema) return update_range(args, input);
  constexpr size_t kTile = 4096;
  UpdateArgs tile = args;
  for (size_t at = args.begin; at < args.end; at = tile.end) {
    tile.begin = at;
    tile.end = std::min(args.end, at + kTile);
    update_range(tile, input);
    const size_t count = tile.end - at;
    simd_kernels().average(average_ + at, args.weight + at, average_rate_, count);
    if (session_.precision.level == PrecisionPolicy::Level::pure)
      round_weights(session_.precision.half, average_ + at, count);
  }
}

// Updates elements [args.begin, args.end), each with the formula of its parameter group.
void Executor::update_range(const UpdateArgs& args, const StepInput& input) const {
  UpdateArgs part = args;
  session_.parameter_groups.each(args.begin, args.end, [&](size_t begin, size_t end, int group) {
    part.begin = begin;
    part.end = end;
    run_update(input.update[static_cast<size_t>(group)], part);
  });
  if (session_.precision.level == PrecisionPolicy::Level::pure)
    round_weights(session_.precision.half, args.weight + args.begin, args.end - args.begin);
}

void Executor::update_stored(const UpdatePiece& piece, UpdateArgs& args, const StepInput& input) {
  watch_gradients({piece.begin, piece.end}, summed_ ? 1 : session_.topology.shards);
  if (!compressed_ || summed_) {
    args.begin = piece.begin;
    args.end = piece.end;
    args.first = 0;
    args.shards = gradients_.data();
    args.shard_count = summed_ ? 1 : session_.topology.shards;
    return apply(args, input);
  }
  float* const tile = compressed_->tile();
  const float* const sum = tile;
  args.shards = &sum;
  args.shard_count = 1;
  for (size_t at = piece.begin; at < piece.end; at = args.end) {
    args.begin = args.first = at;
    args.end = std::min(piece.end, at + CompressedGradients::kTile);
    compressed_->sum({args.begin, args.end}, tile);
    apply(args, input);
  }
}

void Executor::update_fused(const UpdatePiece& piece, UpdateArgs& args, const StepInput& input) {
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
