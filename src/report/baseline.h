// What the speed of a row is compared with, and how much faster the row could be.
#pragma once

#include <span>

#include "report/row.h"

namespace dpt {

// The row of `single` with the same batch size and precision, which for a row of `single` is the
// row itself; where none was measured, the first measured row with the same batch size and
// precision. REQUIRES: `row` is one of `all` and was measured.
const RowResult& baseline_of(const RowResult& row, std::span<const RowResult> all);

double speedup(const RowResult& row, const RowResult& baseline);

// N times for N times the workers, as long as each worker has a core (or GPU) for itself: a machine
// of `cores` cores can run no more at once.
double ideal_speedup(const RowResult& row, const RowResult& baseline, int cores);

// The cores or GPUs that a row's workers share.
struct Processors {
  int count;
  const char* name;  // "core", "GPU"
};
Processors processors_of(const RowResult& row, int cores);

}  // namespace dpt
