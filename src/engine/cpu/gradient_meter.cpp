#include "engine/cpu/gradient_meter.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "backend/cpu/simd/simd.h"

namespace dpt {
namespace {

double sum_of(std::span<const double> values) {
  double out = 0;
  for (const double v : values) out += v;
  return out;
}

int64_t samples_of_shard(const StepRows& rows, size_t shard) {
  int64_t out = 0;
  for (const auto& micro : rows.micro) out += micro[shard].rows.count();
  return out;
}

}  // namespace

void GradientMeter::measure_chunks(const float* gradients, size_t row, size_t first,
                                   size_t last) const {
  simd_kernels().sum_squares(gradients, worker_.buffers.sizes().stored, first, last,
                             worker_.buffers.measures().data() + layout_.row(row));
}

void GradientMeter::measure_shards(size_t first, size_t last) const {
  if (!layout_.by_shard()) return;
  for (int s = 0; s < worker_.session.devices.topology.shards; ++s)
    measure_chunks(worker_.buffers.gradient(s), static_cast<size_t>(s), first, last);
}

void GradientMeter::measure_total(size_t first, size_t last) const {
  if (!layout_.by_shard()) return;
  measure_chunks(worker_.buffers.gradient(0),
                 static_cast<size_t>(worker_.session.devices.topology.shards), first, last);
}

void GradientMeter::measure_parameters() const {
  const size_t chunks = layout_.parameter_chunks();
  const auto workers = static_cast<size_t>(worker_.session.devices.topology.total_workers());
  const auto me = static_cast<size_t>(worker_.number);
  const size_t begin = chunks * me / workers, end = chunks * (me + 1) / workers;
  size_t before = 0;  // chunks of the parameters before this one
  for (const MeasureLayout::Parameter& p : layout_.parameters()) {
    const size_t first = std::max(begin, before), last = std::min(end, before + p.chunks);
    if (first < last)
      simd_kernels().sum_squares(worker_.buffers.gradient(0) + p.offset, p.elements, first - before,
                                 last - before, worker_.buffers.measures().data() + p.first);
    before += p.chunks;
  }
}

// A shard's gradient has the divisor of the whole batch: it is this part of the shard's mean.
double GradientMeter::part_of_batch(const StepInput& input, size_t shard, double divisor) const {
  if (worker_.session.model.divisor == Divisor::targets)
    return worker_.buffers.result(input.number, static_cast<int>(shard)).weight / divisor;
  return static_cast<double>(samples_of_shard(*input.rows, shard)) /
         static_cast<double>(input.rows->samples);
}

GradientMeasures GradientMeter::measures(const StepInput& input, double divisor) const {
  GradientMeasures out;
  const std::span<const double> sums = worker_.buffers.measures();
  const double unscaled = 1 / (input.scale * input.scale);
  for (const MeasureLayout::Parameter& p : layout_.parameters())
    out.norms.push_back(std::sqrt(unscaled * sum_of(sums.subspan(p.first, p.chunks))));
  if (!layout_.by_shard()) return out;
  const auto square = [&](size_t row) {
    return unscaled * sum_of(sums.subspan(layout_.row(row), layout_.chunks()));
  };
  const auto shards = static_cast<size_t>(worker_.session.devices.topology.shards);
  for (size_t s = 0; s < shards; ++s) {
    const int64_t samples = samples_of_shard(*input.rows, s);
    const double part = part_of_batch(input, s, divisor);
    if (samples == 0 || part == 0) continue;
    out.shard_square += square(s) / (part * part);
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
