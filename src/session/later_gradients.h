// Memory for gradients of the second and later micro-batches, which are computed apart and then
// added to those of earlier micro-batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/units.h"
#include "graph/program/program.h"

namespace dpt {

// The rows and columns of a weight in memory order.
std::pair<int64_t, int64_t> rows_and_columns(const TensorDesc& weight);

// Bytes up to the next cache line, where the next gradient begins.
constexpr size_t aligned_to_line(size_t bytes) { return rounded_up(bytes, kCacheLine); }

// Bytes for the gradients of the chosen stages: those of the largest piece that is computed at
// once.
size_t later_bytes(const Program& program, const std::function<bool(int stage)>& chosen);

}  // namespace dpt
