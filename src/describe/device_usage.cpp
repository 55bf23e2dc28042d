#include "describe/device_usage.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.h"
#include "describe/gantt.h"
#include "graph/operator.h"
#include "session/memory.h"

namespace dpt {
namespace {

// Arithmetic operations of one chunk in each stage: the forward part with the loss, and the
// backward part.
void flops_of_stages(const Graph& graph, std::vector<double>& forward,
                     std::vector<double>& backward) {
  forward.assign(static_cast<size_t>(graph.stages()), 0);
  backward = forward;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const bool back = graph.nodes[i].part == Part::backward || graph.nodes[i].part == Part::update;
    (back ? backward : forward)[static_cast<size_t>(graph.nodes[i].stage)] +=
        graph.flops(graph.nodes[i]);
  }
}

}  // namespace

Timing predicted_timing(const CompiledModel& model, const Plan& plan) {
  std::vector<double> forward, backward;
  flops_of_stages(model.graph, forward, backward);
  return simulate(plan.schedule, forward, backward);
}

std::string devices_text(const Session& s) {
  if (s.plan.schedule.empty()) return "";
  std::string out = "devices of a replica:\n";
  const std::vector<DeviceUse> uses = device_uses(s);
  for (size_t d = 0; d < uses.size(); ++d) {
    const DeviceUse& use = uses[d];
    std::vector<std::string> layers;
    for (const GraphNode& n : s.model.graph.nodes)
      if (std::ranges::count(use.stages, n.stage) > 0 && n.layer != "loss" &&
          (layers.empty() || layers.back() != n.layer) &&
          std::ranges::find(layers, n.layer) == layers.end())
        layers.push_back(n.layer);
    out += fmt::format(
        "  device {}: stage{} {}: {} to {}\n"
        "    {:.2f} MiB: weights {:.2f}, gradients {:.2f}, optimizer {:.2f}, activations {:.2f}\n",
        d, use.stages.size() == 1 ? "" : "s", fmt::join(use.stages, ", "),
        layers.empty() ? "no layer" : layers.front(), layers.empty() ? "none" : layers.back(),
        use.total() / kMiB, use.weights / kMiB, use.gradients / kMiB, use.states / kMiB,
        use.activations / kMiB);
  }
  const Timing timing = predicted_timing(s.model, s.plan);
  out += fmt::format(
      "bubble: {:.1f} %, if time is proportional to FLOPs\n"
      "{}",
      100 * timing.bubble, gantt_text(s.plan.schedule, timing));
  return out;
}

}  // namespace dpt
