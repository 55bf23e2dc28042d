// From the model and the loss of a spec to one graph.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/builder.h"
#include "graph/passes/precision.h"
#include "layers/layer.h"
#include "layers/loss.h"
#include "spec/spec.h"

namespace dpt {

// What a graph is wanted for: the sizes of one shard, and what the shard does.
struct ModelQuery {
  TensorDesc input;   // [n, ...]: what the model takes, after transforms
  TensorDesc target;  // [n, ...]: what it should give, after target transforms
  GraphBuilder::Mode mode{};
  bool loss = true;           // false: the model alone; `target` is not looked at
  bool differentiate = true;  // REQUIRES: loss
  bool fuse = true;  // with a loss: operators become one where that is faster (graph/passes/fuse.h)
  int64_t classes = 0;  // class targets are 0 <= c < classes; 0: not known, or they are values
  int64_t tokens = 0;   // the input's tokens are 0 <= t < tokens; 0: not known, or they are numbers
  PrecisionPolicy precision{};
  bool ignores =
      false;  // some target is the loss's ignore_index: what it divides by must be summed
  // The device of each unit, a layer or a residual that stands in no residual; empty: the entries'
  // own `device` says it.
  std::vector<int> placement{};
  bool copies = true;  // between devices: graph/passes/stages.h
  bool recompute_stages =
      false;  // graph/passes/recompute.h; else where the entries' `checkpoint` says so
};

// One layer of the model as it was lowered.
struct LoweredLayer {
  const ModelItem* item;  // belongs to the spec
  std::string name;       // "layer1.0.conv"
  std::vector<ValueId> in;
  ValueId out;
};

// Lowers spec.model and spec.loss. Parameters have torch's state_dict names and stand in the order
// in which torch's modules would be made. Complaints about shapes and `from` go to `d`, at the
// place of the layer or the loss; the graph is of use only where d is still ok. `layers`, where
// given, gets every layer in the order in which they run.
//
// REQUIRES: `spec` was read without complaints.
Graph build_graph(const Spec& spec, const ModelQuery& query, Diagnostics& d,
                  std::vector<LoweredLayer>* layers = nullptr);

// The names of the model's units, in their order; see ModelQuery::placement.
std::vector<std::string> units_of(const std::vector<ModelItem>& model);

// One more than the highest `device` in the model.
int devices_of(const std::vector<ModelItem>& model);

// What the loss of a graph that build_graph made divides by, for which see Note [divisor]:
// `targets` exactly where graph.target_weight is there.
Divisor divisor_of(const Spec& spec, const Graph& graph);

// Whether a divisor of 0 means that the loss ignores every target of the batch, so that all
// gradients are 0. False where the targets do not decide the divisor, and where a class weight of 0
// could make it 0: PyTorch's gradients are nan then, and so are these.
bool zero_divisor_ignores_all(const Graph& graph);

// What one sample adds to a divisor that counts samples, places or elements of an output [N, ...]
// of which an extent, class_dim, has the scores of a place.
int64_t terms_per_sample(Divisor divisor, const Shape& output, int class_dim = 1);

// That extent, which is 1 where the loss has no classes.
int class_dim_of(const Spec& spec, const Shape& output);

// Elements of all parameters, frozen ones included.
int64_t parameter_count(const Graph& graph);

}  // namespace dpt
