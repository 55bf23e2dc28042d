#include "session/later_gradients.h"

#include <algorithm>

#include "session/update_partition.h"

namespace dpt {

std::pair<int64_t, int64_t> rows_and_columns(const TensorDesc& weight) {
  const int64_t rows = weight.shape[weight.layout == Layout::transposed ? 1 : 0];
  return {rows, weight.shape.elements() / std::max<int64_t>(1, rows)};
}

size_t later_bytes(const Program& program, const std::function<bool(int stage)>& chosen) {
  size_t most = 0;
  for (const Instruction& i : program.backward) {
    const GraphNode& node = program.graph.nodes[i.node];
    if (!chosen(node.stage)) continue;
    size_t bytes = 0;
    for (ValueId v : node.out)
      if (program.location[static_cast<size_t>(v)].arena == Arena::gradients)
        bytes += aligned_to_line(program.graph[v].desc.bytes());
    if (bytes > 0 && i.kernel->makes_rows) {
      const auto [rows, columns] = rows_and_columns(program.graph[node.out[0]].desc);
      bytes = static_cast<size_t>(std::min(rows, rows_of_tile(columns)) * columns) * sizeof(float);
    }
    most = std::max(most, bytes);
  }
  return most;
}

}  // namespace dpt
