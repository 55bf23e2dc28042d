#include "session/placement.h"

#include <algorithm>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "base/count.h"
#include "graph/operator.h"
#include "layers/model.h"
#include "parallel/balance.h"

namespace dpt {
namespace {

// The cost of each unit: FLOPs of a step, or bytes. Bytes are 4 times the weights (weights,
// gradients, two optimizer states) plus the results of its layers.
std::vector<double> cost_of_units(const Graph& graph, size_t units, bool memory) {
  std::vector<double> out(units);
  const auto unit = [&](int stage) -> double& {
    return out[static_cast<size_t>(graph.stage_device[static_cast<size_t>(stage)])];
  };
  const std::vector<int> homes = graph.homes();
  for (ValueId p : graph.parameters)
    if (memory)
      unit(homes[static_cast<size_t>(p)]) += 4 * static_cast<double>(graph[p].desc.bytes());
  for (const GraphNode& n : graph.nodes) {
    if (!memory)
      unit(n.stage) += graph.flops(n);
    else if (n.part == Part::forward && !n.op->is(Trait::view))
      for (ValueId v : n.out) unit(n.stage) += static_cast<double>(graph[v].desc.bytes());
  }
  return out;
}

// The stage of each unit if stages begin at `names`. A name is a unit, or a block for its first
// unit.
std::vector<int> cut_at(const std::vector<std::string>& names,
                        const std::vector<std::string>& units, Span where, Diagnostics& d) {
  std::vector<int> out(units.size());
  size_t last = 0;
  for (const std::string& name : names) {
    const auto at = std::ranges::find_if(units, [&](const std::string& unit) {
      return unit == name || unit.starts_with(name + ".");
    });
    const auto begin = static_cast<size_t>(at - units.begin());
    if (at == units.end()) {
      const std::vector<std::string_view> known(units.begin(), units.end());
      d.unknown("layer", {name, where}, " in 'cut'", known);
      return out;
    }
    if (begin <= last) {
      d.error(where,
              fmt::format("'{}' in 'cut' {}", name,
                          begin == 0 ? "is the first layer, where the first stage begins anyway"
                                     : "does not come after the previous one"));
      return out;
    }
    for (size_t i = begin; i < out.size(); ++i) ++out[i];
    last = begin;
  }
  return out;
}

// The units that add nodes to the graph. `identity`, `dropout: 0` and a `flatten` of flat input do
// not. REQUIRES: each unit is on a device of its own.
std::vector<size_t> computing_units(const Graph& graph) {
  std::set<size_t> out;
  for (const GraphNode& n : graph.nodes)
    if (n.part == Part::forward)
      out.insert(static_cast<size_t>(graph.stage_device[static_cast<size_t>(n.stage)]));
  return {out.begin(), out.end()};
}

std::string cannot_be_split(size_t layers, std::string_view which, int stages) {
  return fmt::format("{}{} cannot be split into {} stages; use fewer stages or more layers",
                     counted(layers, "layer"), which, stages);
}

}  // namespace

std::vector<int> place_units(const Spec& spec, const Pipeline& pipeline, int devices,
                             const std::function<Graph(const std::vector<int>&)>& graph_of,
                             Diagnostics& d) {
  const std::vector<std::string> units = units_of(spec.model);
  const int stages = devices * pipeline.stages_a_device;
  std::vector<int> out;
  if (std::ssize(units) < stages) {
    d.error(spec.parallel.where, cannot_be_split(units.size(), "", stages));
    return out;
  }
  if (!pipeline.cut.empty()) {
    out = cut_at(pipeline.cut, units, spec.at("parallel.pipeline.cut"), d);
  } else {
    std::vector<int> apart(units.size());
    std::iota(apart.begin(), apart.end(), 0);
    const Graph graph = graph_of(apart);
    if (!d.ok()) return out;
    const std::vector<size_t> real = computing_units(graph);
    if (std::ssize(real) < stages) {
      d.error(spec.parallel.where, cannot_be_split(real.size(), " that compute something", stages));
      return out;
    }
    const std::vector<double> all = cost_of_units(graph, units.size(), pipeline.by_memory);
    std::vector<double> cost;
    for (const size_t unit : real) cost.push_back(all[unit]);
    const std::vector<int> split = balance(cost, stages);
    // Units without nodes are placed with the unit before them, or at the start with the first
    // unit.
    out.resize(units.size());
    for (size_t i = 0; i < real.size(); ++i)
      std::fill(out.begin() + static_cast<std::ptrdiff_t>(i == 0 ? 0 : real[i]), out.end(),
                split[i]);
  }
  for (int& stage : out) stage %= devices;
  return out;
}

}  // namespace dpt
