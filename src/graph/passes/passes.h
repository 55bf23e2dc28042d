// The passes that turn the graph of a model and a loss into the graph of a training step: one list
// per back end, which build_graph() runs (layers/model.h).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/kernel.h"
#include "graph/passes/precision.h"

namespace dpt {

struct PassSettings {
  PrecisionPolicy precision{};
  bool copies = true;         // insert copies between devices
  bool fuse = true;           // fuse operators of the forward part
  bool differentiate = true;  // add gradients
  bool recompute_stages = false;
  // The moments of a batch norm are those of one shard and of one chunk.
  bool own_moments = true;
  std::span<const KernelType> kernels{};  // of the back end
};

struct Pass {
  std::string_view name;
  void (*run)(Graph& graph, const PassSettings& settings);
  bool (*needed)(const Graph& graph, const PassSettings& settings) = nullptr;  // null: always
  // The line of the spec to name if run() throws Error{spec}. Null, or without a line: the loss.
  Span (*where)(const Graph& graph) = nullptr;
};

std::span<const Pass> cpu_passes();
std::span<const Pass> gpu_passes();
// The passes that both lists begin with. Their result does not depend on kernels.
std::span<const Pass> model_passes();

// What a pass changed: "41 operators (-3): -3 relu, -3 batch_norm, +3 batch_norm{relu}".
struct PassChange {
  std::string_view name;
  std::string text;
};

// Runs a pass if it is needed. `changes`, if given, receives what it changed.
void run_pass(const Pass& pass, Graph& graph, const PassSettings& settings,
              std::vector<PassChange>* changes = nullptr);

}  // namespace dpt
