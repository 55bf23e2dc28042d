// Executor: what `log.grad_norms` and `log.noise_scale` measure of a step's gradients. Workers sum
// squares over chunks of fixed sizes; the first worker adds the chunks up after the step.
#include "engine/cpu/measure.h"

#include <algorithm>
#include <cmath>

#include "engine/cpu/executor.h"

namespace dpt {
namespace {

double sum_of(std::span<const double> values) {
  double out = 0;
  for (const double v : values) out += v;
  return out;
}

int64_t samples_of(const StepRows& rows, size_t shard) {
  int64_t out = 0;
  for (const auto& micro : rows.micro) out += micro[shard].rows.count();
  return out;
}

}  // namespace

void measure_chunks(const Buffers& buffers, const MeasureLayout& layout, const float* gradients,
                    size_t row, size_t first, size_t last) {
  simd_kernels().sum_squares(gradients, buffers.sizes().stored, first, last,
                             buffers.measures().data() + layout.row(row));
}

// Measures this worker's part of the chunks of all parameters. REQUIRES: gradient(0) has the sum
// over shards, and no worker writes it any more.
void Executor::measure_parameters() {
  const size_t chunks = measure_layout_.parameter_chunks();
  const auto workers = static_cast<size_t>(session_.topology.total_workers());
  const auto me = static_cast<size_t>(worker_);
  const size_t begin = chunks * me / workers, end = chunks * (me + 1) / workers;
  size_t before = 0;  // chunks of the parameters before this one
  for (const MeasureLayout::Parameter& p : measure_layout_.parameters()) {
    const size_t first = std::max(begin, before), last = std::min(end, before + p.chunks);
    if (first < last)
      simd_kernels().sum_squares(buffers_.gradient(0) + p.offset, p.elements, first - before,
                                 last - before, buffers_.measures().data() + p.first);
    before += p.chunks;
  }
}

GradientMeasures Executor::measures(const StepInput& input) {
  GradientMeasures out;
  const std::span<const double> sums = buffers_.measures();
  const double unscaled = 1 / (input.scale * input.scale);
  for (const MeasureLayout::Parameter& p : measure_layout_.parameters())
    out.norms.push_back(std::sqrt(unscaled * sum_of(sums.subspan(p.first, p.chunks))));
  if (!measure_layout_.by_shard()) return out;
  const auto square = [&](size_t row) {
    return unscaled * sum_of(sums.subspan(measure_layout_.row(row), measure_layout_.chunks()));
  };
  const auto shards = static_cast<size_t>(session_.topology.shards);
  // A shard's gradient has the divisor of the whole batch: it is this part of the shard's mean.
  const auto part = [&](size_t s) {
    const bool weighted = session_.divisor == Divisor::targets;
    const auto samples = static_cast<double>(samples_of(*input.rows, s));
    return weighted ? buffers_.result(input.number, static_cast<int>(s)).weight / divisor_
                    : samples / static_cast<double>(input.rows->samples);
  };
  for (size_t s = 0; s < shards; ++s) {
    const int64_t samples = samples_of(*input.rows, s);
    if (samples == 0 || part(s) == 0) continue;
    out.shard_square += square(s) / (part(s) * part(s));
    out.inverse_samples += 1 / static_cast<double>(samples);
    ++out.shards;
  }
  out.shard_square /= std::max(1, out.shards);
  out.inverse_samples /= std::max(1, out.shards);
  out.square = square(shards);
  out.samples = static_cast<double>(input.rows->samples);
  return out;
}

}  // namespace dpt
