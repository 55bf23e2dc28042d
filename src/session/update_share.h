// A worker's share of the optimizer's pass: which ranges of the flat buffers are its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "graph/program/program.h"
#include "parallel/topology.h"

namespace dpt {

// A range of the flat buffers: of parameters whose gradients are stored, or some rows of one that
// is fused (program.h, note [fused]).
struct UpdatePiece {
  size_t begin = 0, end = 0;  // elements of the flat buffers
  int fused = -1;             // the instruction of Part::update that makes its gradient; -1: stored
  int64_t first_row = 0;      // fused: the rows of the parameter, each `columns` elements
  int64_t rows = 0, columns = 0;
};

// All elements below layout.trainable that belong to a parameter are in one piece of one worker,
// cut so that workers have about the same work with `batch` samples a step: whole cache lines, and
// fused parameters by groups of rows. Parameters of a stage are those of the workers of its device.
// `program`: of any size.
std::vector<std::vector<UpdatePiece>> share_update(const Program& program, const FlatLayout& layout,
                                                   int64_t batch, const Topology& who);

// Where the flat buffers would begin if `first` were their element number `begin`: an address for
// those who count from there, of which nothing before `first` is there.
inline float* counted_from(float* first, size_t begin) {
  return reinterpret_cast<float*>(reinterpret_cast<uintptr_t>(first) - begin * sizeof(float));
}

// Elements begin..end of the stored gradients.
struct UpdateRange {
  size_t begin = 0, end = 0;
  size_t count() const { return end - begin; }
};
// Where the stored gradients of parameters lie that `chosen(stage)` has, one after another or, with
// several stages, with others in between; empty: there are none.
std::vector<UpdateRange> stored_ranges(const Graph& graph, const FlatLayout& layout,
                                       const std::function<bool(int stage)>& chosen);

// Rows of a fused parameter that are made at a time, so that they stay in the cache.
int64_t rows_of_tile(int64_t columns);
// Elements of the largest such tile that `share` needs.
size_t tile_elements(const std::vector<UpdatePiece>& share);

}  // namespace dpt
