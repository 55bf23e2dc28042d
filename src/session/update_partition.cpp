#include "session/update_partition.h"

#include <algorithm>

#include "backend/cpu/matrix_update.h"

namespace dpt {
namespace {

constexpr int64_t kGroup = 16;  // elements of a cache line; also rows that kernels compute together

// Something to split: elements of stored gradients, or rows of a fused parameter.
struct Partitionable {
  UpdatePiece whole;
  int64_t units = 0;       // elements, or rows
  double cost = 0;         // of one unit
  int64_t grain = kGroup;  // units that stay together
};

// Cost of an element relative to an update from a stored gradient, which takes 17 cycles for 16
// elements. The gradient takes a multiplication and an addition per sample, half a cycle for 16
// elements. Transposed weights are those of first layers, whose inputs often hold zeros, which
// kernels skip. 0.7 minimizes waiting with Fashion-MNIST on two cores.
double cost_of_element(const Value& parameter, int64_t batch) {
  return 1 + static_cast<double>(batch) / 34 *
                 (parameter.desc.layout == Layout::transposed ? 0.70 : 1.0);
}

// Of the whole matrix, in the same unit: the update of its elements, and five Newton-Schulz steps
// of 2 m m n + m m m multiplications, 16 a cycle.
double cost_of_matrix(const UpdatedMatrix& matrix) {
  const auto m = static_cast<double>(std::min(matrix.rows, matrix.columns));
  const auto n = static_cast<double>(std::max(matrix.rows, matrix.columns));
  return m * n + 5 * (2 * m * m * n + m * m * m) / 16;
}

// Stored gradients: the elements between matrices, and each matrix as a whole.
void add_stored(UpdateRange range, std::span<const UpdatedMatrix> matrices,
                std::vector<Partitionable>& out) {
  const auto add_elements = [&](size_t begin, size_t end) {
    if (begin < end)
      out.push_back({.whole = {.begin = begin, .end = end},
                     .units = static_cast<int64_t>(end - begin),
                     .cost = 1});
  };
  size_t at = range.begin;
  for (size_t i = 0; i < matrices.size(); ++i) {
    if (matrices[i].begin < range.begin || matrices[i].begin >= range.end) continue;
    add_elements(at, matrices[i].begin);
    at = (matrices[i].end() + kGroup - 1) / kGroup * kGroup;
    out.push_back({.whole = {.begin = matrices[i].begin,
                             .end = matrices[i].end(),
                             .matrix = static_cast<int>(i)},
                   .units = 1,
                   .cost = cost_of_matrix(matrices[i]),
                   .grain = 1});
  }
  add_elements(at, range.end);
}

std::vector<Partitionable> partitionables(const Program& program, const FlatLayout& layout,
                                          std::span<const UpdatedMatrix> matrices, int64_t batch,
                                          int device) {
  const auto here = [&](int stage) {
    return program.graph.stage_device[static_cast<size_t>(stage)] == device;
  };
  const std::vector<size_t> made = parameters_by_gradient(program.graph);
  std::vector<Partitionable> out;
  for (const UpdateRange& r : stored_ranges(program.graph, layout, here))
    add_stored(r, matrices, out);
  for (size_t i = 0; i < program.update.size(); ++i) {
    if (!here(program.graph.nodes[program.update[i].node].stage)) continue;
    const size_t p = made[static_cast<size_t>(program.graph.nodes[program.update[i].node].out[0])];
    const Value& parameter = program.graph[program.graph.parameters[p]];
    // Rows and columns in memory order.
    const Shape& shape = parameter.desc.shape;
    const int64_t rows = shape[parameter.desc.layout == Layout::transposed ? 1 : 0];
    const int64_t columns = shape.elements() / std::max<int64_t>(1, rows);
    const size_t begin = layout.offset[p];
    out.push_back({.whole = {.begin = begin,
                             .end = begin + static_cast<size_t>(rows * columns),
                             .gradient_instruction = static_cast<int>(i),
                             .first_row = 0,
                             .rows = rows,
                             .columns = columns},
                   .units = rows,
                   .cost = static_cast<double>(columns) * cost_of_element(parameter, batch)});
  }
  return out;
}

UpdatePiece piece_of(const Partitionable& s, int64_t begin, int64_t end) {
  if (s.whole.matrix >= 0) return s.whole;
  UpdatePiece out = s.whole;
  const auto scale = static_cast<size_t>(s.whole.gradient_instruction < 0 ? 1 : s.whole.columns);
  out.begin = s.whole.begin + static_cast<size_t>(begin) * scale;
  out.end = s.whole.begin + static_cast<size_t>(end) * scale;
  if (s.whole.gradient_instruction >= 0) {
    out.first_row = begin;
    out.rows = end - begin;
  }
  return out;
}

}  // namespace

namespace {

std::vector<std::vector<UpdatePiece>> share(const std::vector<Partitionable>& all, int workers) {
  double total = 0;
  for (const Partitionable& s : all) total += static_cast<double>(s.units) * s.cost;
  std::vector<std::vector<UpdatePiece>> out(static_cast<size_t>(workers));
  double before = 0;
  for (const Partitionable& s : all) {
    const double work = static_cast<double>(s.units) * s.cost;
    int64_t begin = 0;
    for (int w = 0; w < workers && begin < s.units; ++w) {
      const double until = total * (w + 1) / workers;  // of the work of all workers
      int64_t end = s.units;
      if (w + 1 < workers && before + work > until) {
        const double units = std::max(0.0, (until - before) / s.cost);
        end = std::min(s.units,
                       static_cast<int64_t>(units / static_cast<double>(s.grain) + 0.5) * s.grain);
      }
      if (end <= begin) continue;
      out[static_cast<size_t>(w)].push_back(piece_of(s, begin, end));
      begin = end;
    }
    before += work;
  }
  return out;
}

}  // namespace

std::vector<std::vector<UpdatePiece>> partition_update(const Program& program,
                                                       const FlatLayout& layout, int64_t batch,
                                                       const Topology& topology,
                                                       std::span<const UpdatedMatrix> matrices) {
  std::vector<std::vector<UpdatePiece>> out(static_cast<size_t>(topology.total_workers()));
  const int copies = topology.replicas_own_weights() ? topology.replicas() : 1;
  for (int device = 0; device < topology.devices_per_replica; ++device) {
    const auto pieces = share(partitionables(program, layout, matrices, batch / copies, device),
                              topology.total_workers() / topology.devices_per_replica / copies);
    size_t next = 0;
    for (int w = 0; w < topology.total_workers(); ++w)
      if (topology.device_of(w) == device)
        out[static_cast<size_t>(w)] = pieces[next++ % pieces.size()];
  }
  return out;
}

std::vector<std::vector<UpdatePiece>> partition_update(const ElementOwners& owners,
                                                       const Topology& topology) {
  std::vector<std::vector<UpdatePiece>> out(static_cast<size_t>(topology.total_workers()));
  for (int host = 0; host < owners.hosts(); ++host) {
    const Rows workers = topology.workers_of_host(host);
    for (size_t b = 0; b < owners.buckets(); ++b) {
      const Bucket piece = owners.piece(b, host);
      for (int64_t w = workers.begin; w < workers.end; ++w) {
        const Bucket own = part_of(piece, w - workers.begin, workers.count(), owners.multiple());
        if (own.count() > 0)
          out[static_cast<size_t>(w)].push_back(
              {.begin = own.begin, .end = own.end, .bucket = static_cast<int>(b)});
      }
    }
  }
  return out;
}

std::vector<UpdateRange> stored_ranges(const Graph& graph, const FlatLayout& layout,
                                       const std::function<bool(int stage)>& chosen) {
  const std::vector<int> homes = graph.homes();
  // Parameters with stored gradients in memory order; the last range ends at layout.stored.
  std::vector<size_t> order;
  for (size_t p = 0; p < graph.parameters.size(); ++p)
    if (graph.gradients[p] != kNoValue && !layout.gradient_in_update[p]) order.push_back(p);
  std::ranges::sort(order, {}, [&](size_t p) { return layout.offset[p]; });
  std::vector<UpdateRange> out;
  for (size_t i = 0; i < order.size(); ++i) {
    if (!chosen(homes[static_cast<size_t>(graph.parameters[order[i]])])) continue;
    const size_t begin = layout.offset[order[i]];
    const size_t end = i + 1 < order.size() ? layout.offset[order[i + 1]] : layout.stored;
    if (!out.empty() && out.back().end == begin)
      out.back().end = end;
    else
      out.push_back({begin, end});
  }
  return out;
}

UpdateRange part_of(UpdateRange range, const Topology& topology, int worker) {
  const size_t lines = (range.count() + kGroup - 1) / kGroup;
  const auto workers = static_cast<size_t>(topology.total_workers());
  const auto at = [&](int w) {
    return std::min(range.end, range.begin + lines * static_cast<size_t>(w) / workers * kGroup);
  };
  return {at(worker), at(worker + 1)};
}

// A tile should stay in the second-level cache, but each tile packs the samples' inputs again,
// which takes as long as several of its rows.
int64_t rows_of_tile(int64_t columns) {
  constexpr int64_t kElements = 65536, kMostElements = 524288;  // 256 KiB, 2 MiB
  constexpr int64_t kUsefulRows = 128;
  columns = std::max<int64_t>(1, columns);
  const int64_t rows =
      std::max(kElements / columns, std::min(kUsefulRows, kMostElements / columns));
  return std::clamp<int64_t>(rows / kGroup * kGroup, kGroup, 16 * kGroup);
}

size_t tile_elements(std::span<const UpdatePiece> share) {
  int64_t most = 0;
  for (const UpdatePiece& p : share)
    if (p.gradient_instruction >= 0) most = std::max(most, rows_of_tile(p.columns) * p.columns);
  return static_cast<size_t>(most);
}

size_t matrix_workspace(std::span<const UpdatePiece> share,
                        std::span<const UpdatedMatrix> matrices) {
  size_t most = 0;
  for (const UpdatePiece& p : share) {
    if (p.matrix < 0) continue;
    const UpdatedMatrix& m = matrices[static_cast<size_t>(p.matrix)];
    most = std::max(most, m.elements() + orthogonal_workspace(m.rows, m.columns));
  }
  return most;
}

}  // namespace dpt
