#include "engine/cpu/gradient_norm.h"

#include <algorithm>
#include <cmath>

#include "backend/cpu/update.h"

namespace dpt {

GradientDecision decide(const ClipSpec& clip, bool scaled, double norm) {
  GradientDecision out{.norm = norm, .overflowed = scaled && !std::isfinite(norm)};
  if (clip.max_norm) out.clip_scale = std::min(1.0, *clip.max_norm / (norm + 1e-6));
  return out;
}

void GradientNorm::sum(const StepInput& input) {
  const Buffers& buffers = worker_.buffers;
  if (worker_.session.devices.topology.hosts() > 1) return sum_share();
  const auto workers = static_cast<size_t>(worker_.updating_workers.count());
  const auto me = static_cast<size_t>(worker_.number - worker_.updating_workers.begin);
  const size_t chunks = buffers.chunks(), elements = buffers.sizes().stored;
  const size_t first = chunks * me / workers, last = chunks * (me + 1) / workers;
  // The sum overwrites the first shard's gradients.
  if (input.measured) meter_.measure_shards(first, last);
  gradients_.sum(
      {std::min(elements, first * Buffers::kChunk), std::min(elements, last * Buffers::kChunk)});
  norm_partials(worker_.session.settings.spec.clip.norm_type, gradients_.total(), elements, first,
                last, buffers.squares());
  if (input.measured) meter_.measure_total(first, last);
  summed_ = true;
}

// With several hosts: the elements are summed already.
void GradientNorm::sum_share() {
  const Buffers& buffers = worker_.buffers;
  for (const UpdatePiece& p : worker_.share)
    norm_partials(worker_.session.settings.spec.clip.norm_type, gradients_.total(),
                  buffers.sizes().stored, p.begin / Buffers::kChunk,
                  (p.end + Buffers::kChunk - 1) / Buffers::kChunk, buffers.squares());
  summed_ = true;
}

GradientDecision GradientNorm::decide(const StepInput& input) const {
  if (!summed_) return {};
  if (input.measured) meter_.measure_parameters();
  const ClipSpec& clip = worker_.session.settings.spec.clip;
  const Buffers& buffers = worker_.buffers;
  if (memory_watch) memory_watch->read(buffers.squares(), buffers.chunks() * sizeof(double));
  const double norm = norm_total(clip.norm_type, buffers.squares(), buffers.chunks());
  return dpt::decide(clip, worker_.session.precision.scaler.on, norm / input.scale);
}

}  // namespace dpt
