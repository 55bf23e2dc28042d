#include "graph/passes/passes.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/half.h"
#include "graph/builder.h"
#include "graph/passes/fuse.h"
#include "graph/passes/layouts.h"
#include "graph/passes/recompute.h"
#include "graph/passes/stages.h"
#include "graph/passes/widen.h"

namespace dpt {
namespace {

using Settings = const PassSettings&;

// The line of the layer with the first trainable parameter without a gradient.
Span line_of_unused(const Graph& graph) {
  for (size_t i = 0; i < graph.parameters.size(); ++i) {
    const ValueId p = graph.parameters[i];
    if (!graph[p].trainable || graph.gradients[i] != kNoValue) continue;
    for (const GraphNode& n : graph.nodes)
      if (std::ranges::find(n.in, p) != n.in.end()) return n.where;
  }
  return {};
}

bool has_halves(const Graph& graph) {
  return std::ranges::any_of(graph.values, [](const Value& v) { return is_half(v.desc.dtype); });
}
bool has_ranges(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const GraphNode& n) { return n.range > 0; });
}

constexpr Pass kPrecision{.name = "precision",
                          .run = [](Graph& g, Settings s) { apply_precision(g, s.precision); },
                          .needed = [](const Graph&, Settings s) { return s.precision.on(); }};
constexpr Pass kStageCopies{
    .name = "stage copies",
    .run = [](Graph& g, Settings) { copy_between_stages(g); },
    .needed = [](const Graph& g, Settings s) { return s.copies && g.stages() > 1; }};
constexpr Pass kFuse{.name = "fuse",
                     .run = [](Graph& g, Settings) { fuse(g); },
                     .needed = [](const Graph&, Settings s) { return s.fuse; }};
constexpr Pass kDifferentiate{.name = "differentiate",
                              .run = [](Graph& g, Settings) { differentiate(g); },
                              .needed = [](const Graph&, Settings s) { return s.differentiate; },
                              .where = line_of_unused};
constexpr Pass kFuseGradients{
    .name = "fuse gradients",
    .run = [](Graph& g, Settings) { fuse_gradients(g); },
    .needed = [](const Graph&, Settings s) { return s.fuse && s.differentiate; }};
constexpr Pass kRecompute{
    .name = "recompute",
    .run = [](Graph& g, Settings s) { recompute(g, s.recompute_stages); },
    .needed = [](const Graph& g,
                 Settings s) { return s.differentiate && (s.recompute_stages || has_ranges(g)); }};
constexpr Pass kFuseProducts{.name = "fuse products",
                             .run = [](Graph& g, Settings) { fuse_products(g); }};
constexpr Pass kFuseBatchNorms{.name = "fuse batch norms",
                               .run = [](Graph& g, Settings) { fuse_batch_norms(g); },
                               .needed = [](const Graph&, Settings s) { return s.own_moments; }};
constexpr Pass kWidenHalves{.name = "widen halves",
                            .run = [](Graph& g, Settings s) { widen_halves(g, s.kernels); },
                            .needed = [](const Graph& g, Settings) { return has_halves(g); }};
constexpr Pass kWidenBetween{
    .name = "widen halves",
    .run = [](Graph& g, Settings s) { widen_halves(g, s.kernels, StoredHalves::between_products); },
    .needed = [](const Graph& g, Settings) { return has_halves(g); }};
constexpr Pass kTransposedWeights{.name = "layouts", .run = [](Graph& g, Settings) {
                                    choose_layouts(g, WeightLayouts::transposed);
                                  }};
constexpr Pass kChannelsLastWeights{.name = "layouts", .run = [](Graph& g, Settings) {
                                      choose_layouts(g, WeightLayouts::channels_last);
                                    }};

constexpr Pass kCpu[] = {kPrecision,     kStageCopies, kFuse,         kDifferentiate,
                         kFuseGradients, kRecompute,   kWidenBetween, kTransposedWeights};
constexpr Pass kGpu[] = {kPrecision,     kStageCopies,        kFuse,         kDifferentiate,
                         kFuseGradients, kRecompute,          kFuseProducts, kFuseBatchNorms,
                         kWidenHalves,   kChannelsLastWeights};
constexpr size_t kOfModel = 6;

using Counts = std::map<std::string, int>;

Counts operators_of(const Graph& graph) {
  Counts out;
  for (const GraphNode& n : graph.nodes) ++out[label_of(n)];
  return out;
}

// "-3 relu, +3 batch_norm{relu}": what is gone, then what is new.
std::vector<std::string> differences(const Counts& before, const Counts& after) {
  Counts all = after;
  for (const auto& [name, count] : before) all[name] -= count;
  std::vector<std::string> out;
  for (const bool gone : {true, false})
    for (const auto& [name, count] : all)
      if (count != 0 && (count < 0) == gone) out.push_back(fmt::format("{:+} {}", count, name));
  return out;
}

// "12 values become bf16" for each type and layout that values from before the pass changed to.
std::vector<std::string> retyped(const std::vector<Value>& before,
                                 const std::vector<Value>& after) {
  Counts counts;
  for (size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
    const TensorDesc &was = before[i].desc, &is = after[i].desc;
    if (was.dtype != is.dtype) ++counts[std::string(name_of(is.dtype))];
    if (was.layout != is.layout) ++counts[std::string(name_of(is.layout))];
  }
  std::vector<std::string> out;
  for (const auto& [type, count] : counts)
    out.push_back(fmt::format("{} value{} {}", count, count == 1 ? " becomes" : "s become", type));
  return out;
}

std::string change_of(const Graph& before, const Graph& after) {
  std::vector<std::string> parts = differences(operators_of(before), operators_of(after));
  const auto more = static_cast<int>(after.nodes.size()) - static_cast<int>(before.nodes.size());
  std::string out =
      parts.empty() ? "" : fmt::format("{} operators ({:+}): ", after.nodes.size(), more);
  for (std::string& text : retyped(before.values, after.values)) parts.push_back(std::move(text));
  return parts.empty() ? "nothing" : fmt::format("{}{}", out, fmt::join(parts, ", "));
}

}  // namespace

std::span<const Pass> cpu_passes() { return kCpu; }
std::span<const Pass> gpu_passes() { return kGpu; }
std::span<const Pass> model_passes() { return std::span(kCpu).first(kOfModel); }

void run_pass(const Pass& pass, Graph& graph, const PassSettings& settings,
              std::vector<PassChange>* changes) {
  const bool needed = pass.needed == nullptr || pass.needed(graph, settings);
  if (!changes) {
    if (needed) pass.run(graph, settings);
    return;
  }
  const Graph before = graph;
  if (needed) pass.run(graph, settings);
  changes->push_back({pass.name, needed ? change_of(before, graph) : "not needed"});
}

}  // namespace dpt
