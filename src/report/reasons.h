// Explains from measurements why a row of a benchmark is faster or slower than its baseline.
#pragma once

#include <span>
#include <string>

#include "report/row.h"

namespace dpt {

// One sentence: how much faster or slower the row is than its baseline_of(), and where it loses
// most against an ideal speed-up. Empty for a baseline whose workers each have a core (or GPU).
// cores: the machine's. REQUIRES: `row` is one of `all` and was measured.
std::string reason(const RowResult& row, std::span<const RowResult> all, int cores);

}  // namespace dpt
