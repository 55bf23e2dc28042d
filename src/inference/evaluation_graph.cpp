#include "inference/evaluation_graph.h"

#include "base/fail.h"
#include "graph/operator.h"
#include "layers/model.h"

namespace dpt {
namespace {

void check_samples_are_independent(const Graph& graph) {
  for (const GraphNode& n : graph.nodes)
    if (n.op->is(Trait::over_shards))
      fail(
          Fault::spec,
          "layer '{}' normalizes with the statistics of a batch (track_running_stats: false), so a "
          "sample alone has no output",
          n.layer);
}

}  // namespace

Graph evaluation_graph(const Spec& spec, const TensorDesc& sample, int64_t samples,
                       std::span<const Pass> passes, std::span<const KernelType> kernels) {
  ModelQuery query;
  query.input = {sample.dtype, sample.shape.batch(samples)};
  query.mode.training = false;
  query.loss = query.differentiate = false;
  query.placement.assign(units_of(spec.model).size(), 0);
  Diagnostics d;
  Graph graph = build_graph(spec, query, d);
  if (!d.ok()) fail(Fault::spec, "the model does not fit the samples:\n{}", d.render());
  check_samples_are_independent(graph);
  graph.gradients.assign(graph.parameters.size(), kNoValue);
  const PassSettings settings{.copies = false, .differentiate = false, .kernels = kernels};
  for (const Pass& pass : passes) run_pass(pass, graph, settings);
  return graph;
}

}  // namespace dpt
