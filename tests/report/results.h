// Rows of a benchmark with fixed numbers.
#pragma once

#include "base/units.h"
#include "report/row.h"

namespace dpt {

inline RowResult result(std::string mode, int64_t devices, int64_t batch, double ms,
                        WorkerSeconds spent) {
  RowResult r;
  r.row = {.mode = std::move(mode), .devices = devices, .batch_size = batch};
  r.facts.workers = static_cast<int>(devices);
  r.facts.fewest = r.facts.most = batch / devices;
  r.facts.barriers = devices > 1 ? 2 : 0;
  r.facts.predicted_bytes = 60.5 * kMiB;
  r.peak_bytes = 61 * kMiB;
  r.ms_per_sample = ms;
  r.fastest = 0.98 * ms;
  r.slowest = 1.02 * ms;
  r.lower = 0.99 * ms;
  r.upper = 1.01 * ms;
  r.spent = spent;
  r.rounds = 5;
  return r;
}

}  // namespace dpt
