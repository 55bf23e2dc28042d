#include "report/baseline.h"

#include <algorithm>

namespace dpt {
namespace {

int at_once(const RowResult& r, int cores) {
  return std::max(1, std::min(r.facts.workers, processors_of(r, cores).count));
}

}  // namespace

const RowResult& baseline_of(const RowResult& row, std::span<const RowResult> all) {
  const auto same = [&](const RowResult& r) {
    return r.refused.empty() && r.row.batch_size == row.row.batch_size &&
           r.row.precision == row.row.precision;
  };
  const auto single = std::ranges::find_if(
      all, [&](const RowResult& r) { return same(r) && r.row.mode == "single"; });
  return single != all.end() ? *single : *std::ranges::find_if(all, same);
}

double speedup(const RowResult& row, const RowResult& baseline) {
  return baseline.ms_per_sample / row.ms_per_sample;
}

double ideal_speedup(const RowResult& row, const RowResult& baseline, int cores) {
  return static_cast<double>(at_once(row, cores)) / at_once(baseline, cores);
}

Processors processors_of(const RowResult& row, int cores) {
  return row.facts.gpus > 0 ? Processors{row.facts.gpus, "GPU"} : Processors{cores, "core"};
}

}  // namespace dpt
