#include "engine/gpu/binding.h"

#include <algorithm>
#include <any>
#include <utility>

#include "base/error.h"
#include "engine/value_address.h"
#include "graph/operator.h"

namespace dpt {

GpuBinding::GpuBinding(const Program& program, BufferPointers memory, cuda::DeviceContext& context,
                       std::span<const Part> parts)
    : program_(program),
      memory_(std::move(memory)),
      constants_(context.api, cuda::MemoryKind::device, program.constant_bytes) {
  if (program_.constant_bytes > 0) upload_constants(context);
  const cuda::DeviceContext::Use use(context);
  for (const Part part : parts)
    for (size_t at = 0; at < program_.part(part).size(); ++at) {
      const Instruction& i = program_.part(part)[at];
      const GraphNode& n = program_.graph.nodes[i.node];
      if (std::ranges::find(memory_.stages, n.stage) == memory_.stages.end()) continue;
      const size_t count = n.in.size() + n.out.size();
      Bound b{.kernel = kernel_of(i),
              .views = std::make_unique<TensorView[]>(count),
              .args = {},
              .instruction = at,
              .stage = n.stage};
      const std::span<TensorView> all(b.views.get(), count);
      for (size_t k = 0; k < count; ++k)
        all[k] = view(k < n.in.size() ? n.in[k] : n.out[k - n.in.size()]);
      b.args = {.in = all.first(n.in.size()), .out = all.subspan(n.in.size())};
      bound_[static_cast<size_t>(part)].push_back(std::move(b));
    }
}

void GpuBinding::ask_for_plans(const Program& program, std::span<const int> stages,
                               std::span<const Part> parts) {
  for (const Part part : parts)
    for (const Instruction& i : program.part(part)) {
      const GraphNode& n = program.graph.nodes[i.node];
      if (std::any_cast<Copy>(&n.attrs) || std::ranges::find(stages, n.stage) == stages.end())
        continue;
      prepare(i, query_of(program.graph, i.node, program.rows));
    }
}

std::unique_ptr<Kernel> GpuBinding::kernel_of(const Instruction& i) const {
  if (memory_.copy)
    if (const auto* const way = std::any_cast<Copy>(&program_.graph.nodes[i.node].attrs))
      if (auto kernel = memory_.copy(*way)) return kernel;
  const GraphNode& n = program_.graph.nodes[i.node];
  auto kernel = prepare(i, query_of(program_.graph, i.node, program_.rows));
  cuda::DeviceContext::current().log_node(n.layer, label_of(n), i.kernel->name);
  return kernel;
}

std::span<const TensorView> GpuBinding::run_one(Part part, size_t index) {
  const Bound& b = bound_[static_cast<size_t>(part)][index];
  b.kernel->run(b.args);
  return b.args.out;
}

void GpuBinding::upload_constants(cuda::DeviceContext& context) {
  const cuda::DeviceBuffer host(context.api, cuda::MemoryKind::pinned, program_.constant_bytes);
  const Graph& graph = program_.graph;
  for (ValueId v = 0; v < static_cast<ValueId>(graph.values.size()); ++v)
    if (graph[v].role == Role::constant)
      std::ranges::transform(
          graph[v].origin->content,
          reinterpret_cast<float*>(host.data() + program_.location[static_cast<size_t>(v)].offset),
          [](double x) { return static_cast<float>(x); });
  context.stream.copy(constants_.data(), host.data(), program_.constant_bytes);
  context.stream.synchronise();
}

TensorView GpuBinding::view(ValueId v) const {
  require(v != kNoValue, "the program has this value");
  Location location = program_.location[static_cast<size_t>(v)];
  if (location.arena == Arena::weights || location.arena == Arena::gradients)
    location.offset = memory_.share->at(location.offset / sizeof(float)) * sizeof(float);
  const auto stage = static_cast<size_t>(location.stage);
  return {program_.graph[v].desc, address_of(location, {.weights = memory_.weights,
                                                        .gradients = memory_.gradients,
                                                        .sums = memory_.sums,
                                                        .activations = memory_.activations[stage],
                                                        .scratch = memory_.scratch[stage],
                                                        .constants = constants_.data()})};
}

}  // namespace dpt
