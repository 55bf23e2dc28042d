// Mixed precision: which operators of a model compute with halves, by the lists of torch's autocast
// (pytorch.org/docs/stable/amp.html#autocast-op-reference) or of Apex's levels. Weights stay in
// f32; so do their gradients, which are sums over many samples.
#pragma once

#include <string>

#include "graph/graph.h"

namespace dpt {

struct PrecisionPolicy {
  // What is in the half:
  enum class Level {
    none,      // o0: nothing
    autocast,  // o1: what autocast says
    model,     // o2: the whole model with its parameters, but for batch normalisation
    pure  // o3: the same, and the optimizer keeps weights that are halves (engine/cpu/update.cpp)
  };
  Level level = Level::none;
  DType half = DType::bf16;
  bool cuda_lists = false;  // else the CPU's: more operators follow their inputs
  bool scales = false;      // what comes back from the loss is multiplied by graph.scale
  bool on() const { return level != Level::none; }
};

// "bf16, o1: by autocast's list of the CPU".
std::string text_of(const PrecisionPolicy& policy);

// Gives each value of a forward graph with its loss the type that the policy wants, with `cast`
// where types meet; a parameter is cast once. graph.output is f32 afterwards. REQUIRES: it is not
// differentiated, and not laid out. Throws Error{spec} for what CUDA's autocast refuses.
void apply_precision(Graph& graph, const PrecisionPolicy& policy);

}  // namespace dpt
