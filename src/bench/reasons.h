// Why a row of a benchmark is slower than `single`, from what was measured of both.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/row.h"

namespace dpt {

// The row of `single` with this one's batch and precision; null where there is none, or it is it.
const RowResult* single_of(const RowResult& row, std::span<const RowResult> all);

// One sentence for each row that is slower than its single: what it loses most by, in order of how
// much of the difference it is; and for each row with more workers than the machine has cores, or
// than they have GPUs.
std::vector<std::string> reasons(std::span<const RowResult> rows, int cores);

}  // namespace dpt
