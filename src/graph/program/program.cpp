#include "graph/program/program.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/half.h"
#include "base/units.h"
#include "graph/attrs.h"
#include "graph/operator.h"
#include "graph/program/locations.h"

namespace dpt {
namespace {

std::vector<Instruction>& list_of(Program& p, Part part) {
  return const_cast<std::vector<Instruction>&>(p.part(part));
}

Instruction instruction_for(const Program& p, size_t node, std::span<const KernelType> kernels) {
  const auto of_shard = [&](ValueId v) {
    return p.batch_scaling[static_cast<size_t>(v)] == BatchScaling::shard;
  };
  const GraphNode& n = p.graph.nodes[node];
  const bool each = p.graph.nodes[node].part != Part::update && !n.op->is(Trait::over_shards) &&
                    (std::ranges::any_of(n.out, of_shard) || std::ranges::any_of(n.in, of_shard));
  if (!each) {
    Instruction out = choose_kernel(p.graph, node, kernels, p.rows);
    out.sync_point = n.op->is(Trait::over_shards);
    out.first_only = std::ranges::any_of(
        p.graph.updates, [&](const Graph::Update& u) { return u.next == n.out[0]; });
    return out;
  }
  const auto& [rows, graph] = *p.shard_graphs.rbegin();
  Instruction out = choose_kernel(graph, node, kernels, {{rows}, p.rows.largest});
  out.each_shard = true;
  return out;
}

// A value whose shape changes with the number of samples is per sample. A value of fixed size that
// is computed from per-sample or per-shard values is per shard, unless it is summed over all
// shards.
std::vector<BatchScaling> extents(const Program& p) {
  std::vector<BatchScaling> out(p.graph.values.size(), BatchScaling::common);
  if (p.shard_graphs.empty()) return out;
  const Graph& one = p.shard_graphs.begin()->second;
  for (ValueId v = 0; v < static_cast<ValueId>(out.size()); ++v)
    if (p.graph[v].desc != one[v].desc) out[static_cast<size_t>(v)] = BatchScaling::sample;
  for (const GraphNode& n : p.graph.nodes) {
    const bool common = n.op->is(Trait::over_shards) || std::ranges::all_of(n.in, [&](ValueId v) {
                          return out[static_cast<size_t>(v)] == BatchScaling::common;
                        });
    for (ValueId v : n.out)
      if (BatchScaling& extent = out[static_cast<size_t>(v)];
          extent != BatchScaling::sample && !common)
        extent = BatchScaling::shard;
  }
  return out;
}

}  // namespace

namespace {

const KernelType& first_that_takes(const KernelQuery& query, std::span<const KernelType> kernels,
                                   std::vector<std::string>& refusals) {
  for (const KernelType& k : kernels) {
    if (!k.op.empty() && k.op != query.op) continue;
    std::string reason = k.refuses ? k.refuses(query) : "";
    if (reason.empty()) return k;
    refusals.push_back(fmt::format("{}: {}", k.name, reason));
  }
  fail(Fault::device, "no kernel for {}: {}", query.op, fmt::join(refusals, "; "));
}

// The query of the in-place rounding of q's first result.
KernelQuery rounding_of(const KernelQuery& q) {
  return {"round_to", {q.out[0]}, {q.out[0]}, Cast{q.rounds}, q.samples, q.largest_shard};
}

class Rounded : public Kernel {
 public:
  Rounded(std::unique_ptr<Kernel> kernel, std::unique_ptr<Kernel> rounding)
      : kernel_(std::move(kernel)), rounding_(std::move(rounding)) {}
  void run(const KernelArgs& args) override {
    kernel_->run(args);
    rounding_->run({.in = args.out.first(1), .out = args.out.first(1), .context = args.context});
  }

 private:
  std::unique_ptr<Kernel> kernel_, rounding_;
};

}  // namespace

KernelQuery query_of(const Graph& graph, const GraphNode& n, const ShardGroupRows& rows) {
  KernelQuery query{n.op->name,   {},           {},       n.attrs,
                    rows.total(), rows.largest, n.rounds, n.rounded_inputs};
  for (ValueId v : n.in) query.in.push_back(graph[v].desc);
  for (ValueId v : n.out) query.out.push_back(graph[v].desc);
  return query;
}

Instruction choose_kernel(const Graph& graph, size_t node, std::span<const KernelType> kernels,
                          const ShardGroupRows& rows) {
  const KernelQuery query = query_of(graph, node, rows);
  Instruction out{.node = node};
  out.kernel = &first_that_takes(query, kernels, out.refusals);
  if (query.rounds != DType::f32 && !out.kernel->rounds) {
    std::vector<std::string> refusals;
    out.rounding = &first_that_takes(rounding_of(query), kernels, refusals);
  }
  return out;
}

std::unique_ptr<Kernel> prepare(const Instruction& chosen, const KernelQuery& query) {
  if (chosen.rounding == nullptr) return chosen.kernel->prepare(query);
  KernelQuery exact = query;
  exact.rounds = DType::f32;
  return std::make_unique<Rounded>(chosen.kernel->prepare(exact),
                                   chosen.rounding->prepare(rounding_of(query)));
}

std::vector<size_t> parameters_by_gradient(const Graph& graph) {
  std::vector<size_t> out(graph.values.size(), kNoParameter);
  for (size_t p = graph.gradients.size(); p-- > 0;)
    if (const ValueId v = graph.gradients[p]; v != kNoValue) out[static_cast<size_t>(v)] = p;
  return out;
}

std::vector<bool> parameters_with_fusible_gradients(const Graph& graph,
                                                    std::span<const KernelType> kernels) {
  std::vector<bool> out(graph.parameters.size()), read(graph.values.size());
  const std::vector<size_t> parameter = parameters_by_gradient(graph);
  for (const GraphNode& n : graph.nodes)
    for (ValueId v : n.in)
      if (v != kNoValue) read[static_cast<size_t>(v)] = true;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& n = graph.nodes[i];
    const auto made = static_cast<size_t>(n.out[0]);
    const size_t p = parameter[made];
    if (p == kNoParameter || n.part != Part::backward || n.out.size() != 1 || n.op->is(Trait::view))
      continue;
    out[p] = !read[made] && choose_kernel(graph, i, kernels).kernel->makes_rows;
  }
  return out;
}

FlatLayout flat_layout(const Graph& graph, std::vector<bool> fused) {
  FlatLayout out;
  out.offset.resize(graph.parameters.size());
  out.gradient_in_update = std::move(fused);
  out.gradient_in_update.resize(graph.parameters.size());
  const auto put = [&](size_t parameter) {
    out.offset[parameter] = out.total;
    const Checked elements = graph[graph.parameters[parameter]].desc.shape.elements();
    out.total = (out.total + elements.rounded_up(kTensorAlignment / sizeof(float))).size();
  };
  const std::vector<size_t> parameter = parameters_by_gradient(graph);
  const auto put_trained = [&](bool which) {
    for (const GraphNode& n : graph.nodes)
      for (ValueId v : n.out)
        if (const size_t p = parameter[static_cast<size_t>(v)];
            p != kNoParameter && out.gradient_in_update[p] == which)
          put(p);
  };
  put_trained(false);
  out.stored = out.total;
  put_trained(true);
  out.trainable = out.total;
  for (size_t i = 0; i < graph.parameters.size(); ++i)
    if (graph.gradients[i] == kNoValue) put(i);
  for (ValueId v : graph.buffers) {
    out.buffer_offset.push_back(out.total);
    const size_t bytes = Checked(graph[v].desc.bytes()).rounded_up(kTensorAlignment).size();
    out.total = (Checked(out.total) + bytes / sizeof(float)).size();
  }
  return out;
}

const std::vector<Instruction>& Program::part(Part p) const {
  switch (p) {
    case Part::prologue:
      return prologue;
    case Part::forward:
      return forward;
    case Part::loss:
      return loss;
    case Part::update:
      return update;
    case Part::backward:
      break;
  }
  return backward;
}

int64_t ShardGroupRows::total() const {
  return std::accumulate(shards.begin(), shards.end(), int64_t{0});
}

bool Program::by_sample() const {
  if (shard_graphs.empty()) return true;
  for (Part part : {Part::prologue, Part::forward, Part::loss, Part::backward})
    for (const Instruction& i : this->part(part))
      if (!i.each_shard && !i.kernel->by_sample) return false;
  return true;
}

Program compile(Graph graph, std::span<const KernelType> kernels, const FlatLayout& layout) {
  const int64_t rows = graph[graph.input].desc.shape[0];
  return compile(
      {{rows}, rows}, [&](int64_t) { return std::move(graph); }, kernels, layout);
}

Program compile(const ShardGroupRows& rows, const std::function<Graph(int64_t)>& graph_of,
                std::span<const KernelType> kernels, const FlatLayout& layout, bool in_flight) {
  Program p;
  p.rows = rows;
  p.graph = graph_of(rows.total());
  if (std::ranges::count_if(rows.shards, [](int64_t n) { return n > 0; }) > 1)
    for (int64_t n : rows.shards)
      if (n > 0 && !p.shard_graphs.contains(n)) p.shard_graphs.emplace(n, graph_of(n));
  const std::vector<size_t> parameter = parameters_by_gradient(p.graph);
  for (GraphNode& n : p.graph.nodes)
    if (const size_t made = parameter[static_cast<size_t>(n.out[0])];
        made != kNoParameter && layout.gradient_in_update[made])
      n.part = Part::update;
  p.batch_scaling = extents(p);
  assign_locations(p, layout, in_flight);
  for (Part part : kParts)
    for (size_t i = 0; i < p.graph.nodes.size(); ++i)
      if (p.graph.nodes[i].part == part && !p.graph.nodes[i].op->is(Trait::view))
        list_of(p, part).push_back(instruction_for(p, i, kernels));
  return p;
}

std::string Program::str() const {
  std::string out;
  constexpr std::pair<Part, std::string_view> kNamed[] = {{Part::prologue, "prologue"},
                                                          {Part::forward, "forward"},
                                                          {Part::loss, "loss"},
                                                          {Part::backward, "backward"},
                                                          {Part::update, "update, row by row"}};
  for (const auto& [number, name] : kNamed) {
    if (part(number).empty()) continue;
    out += fmt::format("  {}:\n", name);
    int stage = -1;
    for (const Instruction& i : part(number)) {
      const GraphNode& n = graph.nodes[i.node];
      if (graph.stages() > 1 && std::exchange(stage, n.stage) != n.stage)
        out += fmt::format("   stage {}, device {}:\n", n.stage,
                           graph.stage_device[static_cast<size_t>(n.stage)]);
      std::vector<std::string_view> in;
      for (ValueId v : n.in) in.push_back(graph[v].name);
      const Value& result = graph[n.out[0]];
      const Layout layout = result.desc.layout;
      out += fmt::format("    {:<22} {:<9} {}{}{}{} = ({}){}\n", label_of(n), i.kernel->name,
                         result.name, result.desc.shape.str(),
                         is_half(result.desc.dtype) ? fmt::format(" {}", name_of(result.desc.dtype))
                         : is_half(n.rounds) ? fmt::format(" rounded to {}", name_of(n.rounds))
                                             : "",
                         layout == Layout::plain ? "" : fmt::format(" {}", name_of(layout)),
                         fmt::join(in, ", "),
                         i.each_shard   ? "  for each shard"
                         : i.sync_point ? "  over all shards of the replica"
                         : i.first_only ? "  by the first shard's worker"
                                        : "");
    }
  }
  return out;
}

}  // namespace dpt
