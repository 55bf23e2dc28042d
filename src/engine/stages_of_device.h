// The stages of the model that one device of a replica has (graph/graph.h, Note [stages]).
#pragma once

#include <cstddef>
#include <vector>

#include "graph/graph.h"

namespace dpt {

class StagesOfDevice {
 public:
  // device: index in the replica. REQUIRES: the graph outlives this.
  StagesOfDevice(const Graph& graph, int device) : graph_(graph), device_(device) {}

  int device() const { return device_; }
  int device_of(int stage) const { return graph_.stage_device[static_cast<size_t>(stage)]; }
  int last() const { return graph_.stages() - 1; }
  bool has(int stage) const { return device_of(stage) == device_; }
  bool has_first() const { return has(0); }      // reads the inputs
  bool has_last() const { return has(last()); }  // computes the loss
  std::vector<int> own() const {
    std::vector<int> out;
    for (int s = 0; s <= last(); ++s)
      if (has(s)) out.push_back(s);
    return out;
  }

 private:
  const Graph& graph_;
  int device_;
};

}  // namespace dpt
