// Partitions the optimizer's work over workers: which ranges of the flat buffers each one updates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "graph/program/program.h"
#include "parallel/host_sums.h"
#include "parallel/topology.h"
#include "session/parameter_groups.h"

namespace dpt {

// A range of the flat buffers: parameters with stored gradients, or rows of a parameter with a
// fused gradient (program.h, Note [fused gradients]).
struct UpdatePiece {
  size_t begin = 0, end = 0;  // elements of the flat buffers
  // Index in Program::update of the instruction that computes its gradient; -1: stored
  int gradient_instruction = -1;
  int64_t first_row = 0;  // fused: rows of the parameter, `columns` elements each
  int64_t rows = 0, columns = 0;
  int matrix = -1;  // index in ParameterGroups::matrices; -1: elements are updated alone
  int bucket = -1;  // with several hosts: of the gradients (parallel/host_sums.h)
};

// The pieces of each worker. Every element below layout.trainable that belongs to a parameter is in
// exactly one piece; if replicas own their weights, in one of each replica. Workers get about equal
// work for `batch` samples per step of all replicas. Stored gradients are split at cache lines,
// fused parameters between groups of rows; a matrix that is updated as a whole is one piece.
// Parameters of a stage go to the workers of its device.
// program: for any number of samples. matrices: those, with stored gradients, in memory order.
std::vector<std::vector<UpdatePiece>> partition_update(
    const Program& program, const FlatLayout& layout, int64_t batch, const Topology& topology,
    std::span<const UpdatedMatrix> matrices = {});

// With several hosts: the pieces of each worker of all hosts, the elements of each bucket that its
// host owns divided evenly over the host's workers. All gradients are stored.
std::vector<std::vector<UpdatePiece>> partition_update(const ElementOwners& owners,
                                                       const Topology& topology);

// A pointer p such that p + begin is `first`, for code that indexes flat buffers by their own
// offsets. Elements before `first` must not be accessed.
inline float* counted_from(float* first, size_t begin) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): pointer arithmetic must stay within an array
  return reinterpret_cast<float*>(reinterpret_cast<uintptr_t>(first) - begin * sizeof(float));
}

// Elements [begin, end) of the stored gradients.
struct UpdateRange {
  size_t begin = 0, end = 0;
  size_t count() const { return end - begin; }
};
// The ranges of stored gradients whose stage is chosen, in ascending order. May be empty.
std::vector<UpdateRange> stored_ranges(const Graph& graph, const FlatLayout& layout,
                                       const std::function<bool(int stage)>& chosen);

// The worker's part of elements [begin, end) of a flat buffer: whole cache lines.
UpdateRange part_of(UpdateRange range, const Topology& topology, int worker);

// How many rows of a fused gradient are computed at once, so that they stay in the cache.
int64_t rows_of_tile(int64_t columns);
// Floats that the update of the largest matrix in `share` needs: its direction, and workspace.
size_t matrix_workspace(std::span<const UpdatePiece> share,
                        std::span<const UpdatedMatrix> matrices);
// Elements of the largest such tile in `share`.
size_t tile_elements(std::span<const UpdatePiece> share);

}  // namespace dpt
