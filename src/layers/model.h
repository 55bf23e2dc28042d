// Builds a graph from the model and the loss of a spec.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/builder.h"
#include "graph/passes/passes.h"
#include "layers/layer.h"
#include "layers/loss.h"
#include "spec/spec.h"

namespace dpt {

// The shapes of one shard, and what its graph must contain.
struct ModelQuery {
  TensorDesc input;   // [n, ...]: input of the model, after transforms
  TensorDesc target;  // [n, ...]: targets, after target transforms
  GraphBuilder::Mode mode{};
  bool loss = true;           // false: the model only; `target` is ignored
  bool differentiate = true;  // REQUIRES: loss
  bool fuse = true;           // operator fusion, only with a loss (graph/passes/fuse.h)
  // The passes to run, only with a loss: model_passes(), or all those of a back end with its
  // kernels.
  std::span<const Pass> passes = model_passes();
  std::span<const KernelType> kernels{};
  bool own_moments = true;  // see PassSettings
  int64_t classes = 0;      // class targets are in [0, classes); 0: unknown, or not classes
  int64_t tokens = 0;       // input tokens are in [0, tokens); 0: unknown, or not tokens
  PrecisionPolicy precision{};
  // Some target may be the loss's ignore_index, so the divisor is summed over targets.
  bool ignores = false;
  // The device of each unit: a layer or residual that is not inside of a residual. Empty: use the
  // keys `device` of the model.
  std::vector<int> placement{};
  bool copies = true;  // insert copies between devices (graph/passes/stages.h)
  // Recompute all activations of a stage (graph/passes/recompute.h); otherwise those of entries
  // with `checkpoint`.
  bool recompute_stages = false;
};

// A layer of the model and its values in the graph.
struct LoweredLayer {
  const ModelItem* item;  // owned by the spec
  std::string name;       // "layer1.0.conv"
  std::vector<ValueId> in;
  ValueId out;
};

// Builds the graph of spec.model and spec.loss. Parameters have the names of PyTorch's state_dict,
// and the order in which PyTorch would create them. Errors about shapes and `from` are reported to
// `d` at the line of the layer or loss; the graph is valid only if d.ok() afterwards. `layers`, if
// given, receives all layers in execution order; `changes` what each pass changed.
//
// REQUIRES: `spec` was read without errors.
Graph build_graph(const Spec& spec, const ModelQuery& query, Diagnostics& d,
                  std::vector<LoweredLayer>* layers = nullptr,
                  std::vector<PassChange>* changes = nullptr);

// The names of the model's units in order; see ModelQuery::placement.
std::vector<std::string> units_of(const std::vector<ModelItem>& model);

// 1 + the highest `device` in the model.
int devices_of(const std::vector<ModelItem>& model);

// What the loss of a graph from build_graph() divides by (Note [divisor]). It is `targets` if and
// only if the graph has a target_weight.
Divisor divisor_of(const Spec& spec, const Graph& graph);

// Whether a divisor of 0 means that every target of the batch is ignored, so that all gradients are
// 0. False if the divisor does not depend on targets, and if a class weight is 0: then gradients
// are nan, as in PyTorch.
bool zero_divisor_ignores_all(const Graph& graph);

// How much one sample adds to a divisor that counts samples, places or elements of an output [N,
// ...]. class_dim: the dimension of the class scores.
int64_t terms_per_sample(Divisor divisor, const Shape& output, int class_dim = 1);

// The dimension of the class scores; 1 if the loss has no classes.
int class_dim_of(const Spec& spec, const Shape& output);

// Number of elements of all parameters, including frozen ones.
int64_t parameter_count(const Graph& graph);

}  // namespace dpt
