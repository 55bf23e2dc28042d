// Gradients of a later micro-batch that are not summed where they are computed: how much memory
// they take until they are added to those of the micro-batches before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "graph/program/program.h"

namespace dpt {

// The rows of a weight and the elements of each, as they lie in memory.
std::pair<int64_t, int64_t> rows_and_columns(const TensorDesc& weight);

// Bytes up to the next cache line, where the next gradient begins.
constexpr size_t aligned_to_line(size_t bytes) { return (bytes + 63) / 64 * 64; }

// Bytes for the gradients of the chosen stages: the largest piece that is computed at a time.
size_t later_bytes(const Program& program, const std::function<bool(int stage)>& chosen);

}  // namespace dpt
