// Why a row of a benchmark is faster or slower than its baseline, from what was measured of both.
#pragma once

#include <span>
#include <string>

#include "report/row.h"

namespace dpt {

// One sentence: how much faster or slower the row is than baseline_of() it, and what it loses most
// time by, compared with an ideal speed-up. Empty for a baseline whose workers have a core (or GPU)
// each. cores: of the machine. REQUIRES: `row` is one of `all` and was measured.
std::string reason(const RowResult& row, std::span<const RowResult> all, int cores);

}  // namespace dpt
