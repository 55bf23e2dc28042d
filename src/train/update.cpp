// The executor's last pass: gradients of all shards summed, clipped, and the optimizer's step over
// the worker's share of the parameters.
#include "backend/cpu/update.h"

#include <algorithm>
#include <cmath>

#include "backend/cpu/half_kernels.h"
#include "backend/cpu/simd/simd.h"
#include "train/executor.h"

namespace dpt {

// Norms are summed over chunks of a fixed size, whoever sums them.
void Executor::sum_squares() {
  const auto workers = static_cast<size_t>(session_.who.total_workers());
  const auto me = static_cast<size_t>(worker_);
  const size_t chunks = buffers_.chunks(), elements = buffers_.sizes().stored;
  const size_t first = chunks * me / workers, last = chunks * (me + 1) / workers;
  float* total = buffers_.gradient(0);
  simd_kernels().sum_shards_range(total, gradients_.data(), session_.who.shards,
                                  std::min(elements, first * Buffers::kChunk),
                                  std::min(elements, last * Buffers::kChunk));
  norm_partials(session_.spec.clip.norm_type, total, elements, first, last, buffers_.squares());
  summed_ = true;
}

// Rows [begin, end) of the gradient that `piece` is a part of: one chain over the samples of all
// shards, in their order.
void Executor::make_rows(const UpdatePiece& piece, int64_t begin, int64_t end) {
  for (size_t i = 0; i < with_rows_.size(); ++i)
    with_rows_[i]->run_rows(static_cast<size_t>(piece.fused), begin, end, i > 0, rows_.data());
}

void Executor::update(const StepInput& input) {
  const ClipSpec& clip = session_.spec.clip;
  if (summed_) {
    result_.norm = norm_total(clip.norm_type, buffers_.squares(), buffers_.chunks()) / input.scale;
    result_.overflowed = session_.scaler.on && !std::isfinite(result_.norm);
    if (result_.overflowed) return;
    if (clip.max_norm) clip_scale_ = std::min(1.0, *clip.max_norm / (result_.norm + 1e-6));
  }
  with_rows_.clear();
  if (!rows_.empty())
    for (int g = 0; g < static_cast<int>(session_.groups.size()); ++g)
      if (Binding* b = binding(g, input.rows->micro[0], kTrain)) with_rows_.push_back(b);
  UpdateArgs args;
  args.weight = buffers_.weights();
  for (size_t i = 0, buffer = 0; i < state_names_.size();
       ++i)  // a place without a name has no buffer
    if (!state_names_[i].empty()) args.state[i] = buffers_.state(static_cast<int>(buffer++));
  args.grad_scale = static_cast<float>(clip_scale_ / input.scale);
  args.clip_value = static_cast<float>(clip.value.value_or(0));
  const auto run = [&] {
    run_update(*input.update, args);
    if (session_.precision.level == PrecisionPolicy::Level::pure)
      round_weights(session_.precision.half, args.weight + args.begin, args.end - args.begin);
  };
  for (const UpdatePiece& piece : share_) {
    args.begin = piece.begin;
    args.end = piece.end;
    if (piece.fused < 0) {
      args.first = 0;
      args.shards = gradients_.data();
      args.shard_count = summed_ ? 1 : session_.who.shards;
      run();
      continue;
    }
    const float* const rows_made = rows_.data();
    args.shards = &rows_made;
    args.shard_count = 1;
    const int64_t height = rows_of_tile(piece.columns);
    for (int64_t r = 0; r < piece.rows; r += height) {
      const int64_t rows = std::min(height, piece.rows - r);
      make_rows(piece, piece.first_row + r, piece.first_row + r + rows);
      args.begin = args.first = piece.begin + static_cast<size_t>(r * piece.columns);
      args.end = args.begin + static_cast<size_t>(rows * piece.columns);
      run();
    }
  }
}

}  // namespace dpt
