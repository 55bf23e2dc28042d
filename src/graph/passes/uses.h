// Which nodes compute and read each value of a graph.
#pragma once

#include <cstddef>
#include <vector>

#include "graph/graph.h"

namespace dpt {

// As long as nodes are neither moved nor removed. A change of a node's inputs is not noticed.
class Uses {
 public:
  static constexpr auto kNoNode = static_cast<size_t>(-1);

  explicit Uses(const Graph& graph);
  bool knows(ValueId v) const { return static_cast<size_t>(v) < uses_.size(); }
  // The node that computes v; kNoNode: none does.
  size_t maker(ValueId v) const { return of(v).maker; }
  // The nodes that read v, in order; one that reads it twice is there twice.
  const std::vector<size_t>& readers(ValueId v) const { return of(v).readers; }
  // How many readers v has; those that need the model's output, loss and gradients count.
  size_t count(ValueId v) const { return of(v).readers.size() + of(v).others; }

 private:
  struct Use {
    size_t maker = kNoNode;
    std::vector<size_t> readers;
    size_t others = 0;  // readers that are not nodes
  };
  const Use& of(ValueId v) const { return uses_[static_cast<size_t>(v)]; }

  std::vector<Use> uses_;  // of each value
};

}  // namespace dpt
