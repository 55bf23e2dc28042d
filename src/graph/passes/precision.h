// Mixed precision: decides which operators compute in a half, by torch.autocast's lists
// (pytorch.org/docs/stable/amp.html#autocast-op-reference) or by the levels of NVIDIA Apex. Weights
// and their gradients, which are sums over many samples, stay in f32.
#pragma once

#include <string>

#include "graph/graph.h"

namespace dpt {

struct PrecisionPolicy {
  // Apex's optimization levels: what is in the half.
  enum class Level {
    none,      // o0: nothing
    autocast,  // o1: what autocast's lists say
    model,     // o2: the whole model and its parameters, except batch norm
    pure       // o3: as o2, and the optimizer rounds weights to the half (engine/cpu/update.cpp)
  };
  Level level = Level::none;
  DType half = DType::bf16;
  // Use CUDA's autocast lists, not the CPU's; in the latter, more operators follow their inputs
  bool cuda_lists = false;
  bool scales = false;  // multiply the gradient of the model's output by graph.scale
  bool on() const { return level != Level::none; }
};

// "bf16, o1: by autocast's list of the CPU".
std::string text_of(const PrecisionPolicy& policy);

// Sets the dtype of each value of a forward graph with loss, and inserts `cast` where dtypes
// differ; a parameter is cast once. Afterwards graph.output is f32. REQUIRES: not differentiated,
// layouts not chosen. Throws Error{spec} for operators that CUDA's autocast refuses.
void apply_precision(Graph& graph, const PrecisionPolicy& policy);

}  // namespace dpt
