// The baseline to which a row's speed is compared, and the speed-up that would be ideal.
#pragma once

#include <span>

#include "report/row.h"

namespace dpt {

// The row of `single` with the same batch size and precision (for a row of `single`, the row
// itself). If there is none, the first measured row with the same batch size and precision.
// REQUIRES: `row` is one of `all` and was measured.
const RowResult& baseline_of(const RowResult& row, std::span<const RowResult> all);

double speedup(const RowResult& row, const RowResult& baseline);

// N times for N times the workers, as long as each worker has its own core (or GPU): a machine with
// `cores` cores runs no more workers at once.
double ideal_speedup(const RowResult& row, const RowResult& baseline, int cores);

// The cores or GPUs that a row's workers share.
struct Processors {
  int count;
  const char* name;  // "core", "GPU"
};
Processors processors_of(const RowResult& row, int cores);

}  // namespace dpt
