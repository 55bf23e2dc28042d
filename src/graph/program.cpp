#include "graph/program.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/fail.h"
#include "base/half.h"
#include "graph/operator.h"

namespace dpt {
namespace {

constexpr size_t kLine = 64;  // bytes; tensors begin at cache lines
constexpr size_t aligned(size_t n, size_t to) { return (n + to - 1) / to * to; }

// When a value must be in memory, as numbers of instructions.
struct Lifetime {
  size_t first = 0, last = 0;
  bool used = false;
};

// The value whose memory a value is: itself, or what it views.
ValueId owner_of(const std::vector<ValueId>& views, ValueId v) {
  while (views[static_cast<size_t>(v)] != v) v = views[static_cast<size_t>(v)];
  return v;
}

std::vector<Instruction>& list_of(Program& p, Part part) {
  return const_cast<std::vector<Instruction>&>(p.part(part));
}

constexpr Part kParts[] = {Part::prologue, Part::forward, Part::loss, Part::backward, Part::update};

Instruction instruction_for(const Program& p, size_t node, std::span<const KernelType> kernels) {
  const auto of_shard = [&](ValueId v) {
    return p.extent[static_cast<size_t>(v)] == Extent::shard;
  };
  const GraphNode& n = p.graph.nodes[node];
  const bool each = p.graph.part[node] != Part::update && !n.op->over_shards &&
                    (std::ranges::any_of(n.out, of_shard) || std::ranges::any_of(n.in, of_shard));
  if (!each) {
    Instruction out = choose_kernel(p.graph, node, kernels, p.rows);
    out.cut = n.op->over_shards;
    out.first_only = std::ranges::any_of(
        p.graph.updates, [&](const Graph::Update& u) { return u.next == n.out[0]; });
    return out;
  }
  const auto& [rows, graph] = *p.shard_graphs.rbegin();
  Instruction out = choose_kernel(graph, node, kernels, {{rows}, p.rows.largest});
  out.each_shard = true;
  return out;
}

// What a sample has a part of grows with their number; what is made of that without growing each
// shard has, unless it is summed over all.
std::vector<Extent> extents(const Program& p) {
  std::vector<Extent> out(p.graph.values.size(), Extent::common);
  if (p.shard_graphs.empty()) return out;
  const Graph& one = p.shard_graphs.begin()->second;
  for (ValueId v = 0; v < static_cast<ValueId>(out.size()); ++v)
    if (p.graph[v].desc != one[v].desc) out[static_cast<size_t>(v)] = Extent::sample;
  for (const GraphNode& n : p.graph.nodes) {
    const bool common = n.op->over_shards || std::ranges::all_of(n.in, [&](ValueId v) {
                          return out[static_cast<size_t>(v)] == Extent::common;
                        });
    for (ValueId v : n.out)
      if (Extent& extent = out[static_cast<size_t>(v)]; extent != Extent::sample && !common)
        extent = Extent::shard;
  }
  return out;
}

// Of each value: itself, or what it views.
std::vector<ValueId> views_of(const Graph& graph) {
  std::vector<ValueId> out(graph.values.size());
  std::iota(out.begin(), out.end(), 0);
  for (const GraphNode& n : graph.nodes)
    if (n.op->view) out[static_cast<size_t>(n.out[0])] = n.in[0];
  return out;
}

void place_flat(Program& p, const FlatLayout& layout) {
  for (size_t i = 0; i < p.graph.parameters.size(); ++i) {
    const size_t bytes = layout.offset[i] * sizeof(float);
    p.place[static_cast<size_t>(p.graph.parameters[i])] = {Arena::weights, bytes};
    const ValueId gradient = p.graph.gradients[i];
    if (gradient != kNoValue && !layout.fused[i])
      p.place[static_cast<size_t>(gradient)] = {Arena::gradients, bytes};
  }
  for (size_t i = 0; i < p.graph.buffers.size(); ++i)
    p.place[static_cast<size_t>(p.graph.buffers[i])] = {Arena::weights,
                                                        layout.buffer_offset[i] * sizeof(float)};
  for (const Graph::Update& u : p.graph.updates)
    p.place[static_cast<size_t>(u.next)] = p.place[static_cast<size_t>(u.buffer)];
  for (const GraphNode& n : p.graph.nodes)
    if (n.op->over_shards) {
      p.place[static_cast<size_t>(n.in[0])] = {Arena::sums, p.sum_bytes};
      p.sum_bytes += aligned(p.graph[n.in[0]].desc.bytes(), kLine);
    }
}

void place_constants(Program& p) {
  for (size_t v = 0; v < p.place.size(); ++v) {
    const Value& value = p.graph.values[v];
    if (value.role != Role::constant) continue;
    p.place[v] = {Arena::constants, p.constant_bytes};
    p.constant_bytes += aligned(value.desc.bytes(), kLine);
  }
}

// Of all values that have no place yet.
std::vector<Lifetime> lifetimes(const Program& p, const std::vector<ValueId>& views) {
  const Graph& graph = p.graph;
  std::vector<Lifetime> life(views.size());
  const auto touch = [&](ValueId v, size_t now) {
    if (v == kNoValue) return;
    const auto own = static_cast<size_t>(owner_of(views, v));
    if (p.place[own].arena != Arena::none) return;
    if (!life[own].used) life[own] = {now, now, true};
    life[own].last = std::max(life[own].last, now);
  };
  const auto touch_masks = [&](size_t now) {
    for (ValueId v = 0; v < static_cast<ValueId>(views.size()); ++v)
      if (graph[v].role == Role::mask) touch(v, now);
  };
  for (ValueId v : {graph.input, graph.target, graph.divisor, graph.scale}) touch(v, 0);
  touch_masks(0);
  // In run order; a part's nodes need not stand together in the graph.
  size_t now = 0;
  for (Part part : kParts)
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const GraphNode& n = graph.nodes[i];
      if (graph.part[i] != part) continue;
      if (part != Part::update) ++now;  // those are run row by row, as if all at once
      if (part != Part::update)
        for (ValueId v : n.out) touch(v, now);
      for (ValueId v : n.in) touch(v, part == Part::update ? now + 1 : now);
    }
  // What the executor reads or fills lives through the whole step.
  for (ValueId v : {graph.target, graph.divisor, graph.scale, graph.loss, graph.target_weight,
                    graph.correct, graph.output, graph.output_gradient})
    touch(v, now + 1);
  touch_masks(now + 1);
  return life;
}

// Whether only one part of one stage knows the value, so that nothing of it need outlive the part.
std::vector<bool> within_a_part(const Program& p, const std::vector<ValueId>& views) {
  const Graph& graph = p.graph;
  const std::vector<int> homes = graph.homes();
  constexpr int kNobody = -1, kSeveral = -2;
  std::vector<int> part(views.size(), kNobody);
  const auto touch = [&](ValueId v, int by) {
    if (v == kNoValue) return;
    int& known = part[static_cast<size_t>(owner_of(views, v))];
    known = known == kNobody || known == by ? by : kSeveral;
  };
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& n = graph.nodes[i];
    const Part own = graph.part[i] == Part::loss ? Part::forward : graph.part[i];
    const auto use = [&](ValueId v) {
      const bool here = homes[static_cast<size_t>(owner_of(views, v))] == n.stage;
      touch(v, here && own != Part::update ? static_cast<int>(own) : kSeveral);
    };
    std::ranges::for_each(n.in, use);
    std::ranges::for_each(n.out, use);
  }
  for (ValueId v : {graph.input, graph.target, graph.divisor, graph.scale, graph.loss,
                    graph.target_weight, graph.correct, graph.output, graph.output_gradient})
    touch(v, kSeveral);
  std::vector<bool> out(views.size());
  for (size_t v = 0; v < out.size(); ++v)
    out[v] = part[v] >= 0 && graph.values[v].role != Role::mask;
  return out;
}

// Offsets for the values `which`: each takes the lowest place that is free during its life, in the
// order in which they come to life. Gives the bytes that this takes.
size_t place_in(Program& p, Arena arena, int stage, const std::vector<Lifetime>& life,
                const std::vector<ValueId>& which) {
  struct Block {
    size_t begin, end;
    Lifetime life;
  };
  std::vector<Block> blocks;  // sorted by begin
  size_t top = 0;
  for (ValueId v : which) {
    const Lifetime& mine = life[static_cast<size_t>(v)];
    size_t size = p.shard_stride(v);
    if (p.extent[static_cast<size_t>(v)] == Extent::shard) size *= p.rows.shards.size();
    size_t at = 0;
    for (const Block& b : blocks) {
      if (b.life.last < mine.first || mine.last < b.life.first) continue;
      if (at + size <= b.begin) break;
      at = std::max(at, b.end);
    }
    const Block block{at, at + size, mine};
    blocks.insert(std::ranges::upper_bound(blocks, at, {}, &Block::begin), block);
    p.place[static_cast<size_t>(v)] = {arena, at, stage};
    top = std::max(top, block.end);
  }
  return top;
}

void place_activations(Program& p, const std::vector<ValueId>& views, bool in_flight) {
  const std::vector<Lifetime> life = lifetimes(p, views);
  std::vector<ValueId> order;
  for (ValueId v = 0; v < static_cast<ValueId>(life.size()); ++v)
    if (life[static_cast<size_t>(v)].used) order.push_back(v);
  std::ranges::stable_sort(order, {},
                           [&](ValueId v) { return life[static_cast<size_t>(v)].first; });
  const std::vector<int> homes = p.graph.homes();
  std::vector<bool> within(views.size());
  if (in_flight) within = within_a_part(p, views);
  for (int stage = 0; stage < p.graph.stages(); ++stage) {
    const auto those = [&](bool scratch) {
      std::vector<ValueId> out;
      std::ranges::copy_if(order, std::back_inserter(out), [&](ValueId v) {
        const auto i = static_cast<size_t>(v);
        return homes[i] == stage && within[i] == scratch;
      });
      return out;
    };
    p.arena.push_back({place_in(p, Arena::activations, stage, life, those(false)),
                       place_in(p, Arena::scratch, stage, life, those(true))});
  }
}

}  // namespace

KernelQuery query_of(const Graph& graph, const GraphNode& n, const GroupRows& rows) {
  KernelQuery query{n.op->name, {}, {}, n.attrs, rows.total(), rows.largest};
  for (ValueId v : n.in) query.in.push_back(graph[v].desc);
  for (ValueId v : n.out) query.out.push_back(graph[v].desc);
  return query;
}

Instruction choose_kernel(const Graph& graph, size_t node, std::span<const KernelType> kernels,
                          const GroupRows& rows) {
  const KernelQuery query = query_of(graph, node, rows);
  Instruction out{.node = node};
  for (const KernelType& k : kernels) {
    if (!k.op.empty() && k.op != query.op) continue;
    std::string reason = k.refuses ? k.refuses(query) : "";
    if (reason.empty()) {
      out.kernel = &k;
      return out;
    }
    out.refusals.push_back(fmt::format("{}: {}", k.name, reason));
  }
  fail(Fault::device, "no kernel for {}: {}", query.op, fmt::join(out.refusals, "; "));
}

size_t parameter_of(const Graph& graph, ValueId v) {
  const auto at = std::ranges::find(graph.gradients, v);
  return v == kNoValue || at == graph.gradients.end()
             ? kNoParameter
             : static_cast<size_t>(at - graph.gradients.begin());
}

std::vector<bool> fusible(const Graph& graph, std::span<const KernelType> kernels) {
  std::vector<bool> out(graph.parameters.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& n = graph.nodes[i];
    const size_t p = parameter_of(graph, n.out[0]);
    if (p == kNoParameter || graph.part[i] != Part::backward || n.out.size() != 1 || n.op->view)
      continue;
    const bool read = std::ranges::any_of(graph.nodes, [&](const GraphNode& other) {
      return std::ranges::find(other.in, n.out[0]) != other.in.end();
    });
    // What is computed again would have to live until the update.
    const bool again =
        std::ranges::any_of(n.in, [&](ValueId v) { return graph[v].name.ends_with(" again"); });
    out[p] = !read && !again && choose_kernel(graph, i, kernels).kernel->makes_rows;
  }
  return out;
}

FlatLayout flat_layout(const Graph& graph, std::vector<bool> fused) {
  FlatLayout out;
  out.offset.resize(graph.parameters.size());
  out.fused = std::move(fused);
  out.fused.resize(graph.parameters.size());
  const auto put = [&](size_t parameter) {
    out.offset[parameter] = out.total;
    const auto elements =
        static_cast<size_t>(graph[graph.parameters[parameter]].desc.shape.elements());
    out.total += aligned(elements, kLine / sizeof(float));
  };
  const auto put_trained = [&](bool which) {
    for (const GraphNode& n : graph.nodes)
      for (ValueId v : n.out)
        if (const size_t p = parameter_of(graph, v); p != kNoParameter && out.fused[p] == which)
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
    out.total += aligned(graph[v].desc.bytes(), kLine) / sizeof(float);
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

int64_t GroupRows::total() const {
  return std::accumulate(shards.begin(), shards.end(), int64_t{0});
}

size_t Program::shard_stride(ValueId v) const {
  return std::max(kLine, aligned(graph[v].desc.bytes(), kLine));
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

Program compile(const GroupRows& rows, const std::function<Graph(int64_t)>& graph_of,
                std::span<const KernelType> kernels, const FlatLayout& layout, bool in_flight) {
  Program p;
  p.rows = rows;
  p.graph = graph_of(rows.total());
  if (std::ranges::count_if(rows.shards, [](int64_t n) { return n > 0; }) > 1)
    for (int64_t n : rows.shards)
      if (n > 0 && !p.shard_graphs.contains(n)) p.shard_graphs.emplace(n, graph_of(n));
  for (size_t i = 0; i < p.graph.nodes.size(); ++i)
    if (const size_t made = parameter_of(p.graph, p.graph.nodes[i].out[0]);
        made != kNoParameter && layout.fused[made])
      p.graph.part[i] = Part::update;
  p.extent = extents(p);
  p.place.resize(p.graph.values.size());
  place_flat(p, layout);
  place_constants(p);
  const std::vector<ValueId> views = views_of(p.graph);
  place_activations(p, views, in_flight);
  for (size_t v = 0; v < views.size(); ++v)
    p.place[v] = p.place[static_cast<size_t>(owner_of(views, static_cast<ValueId>(v)))];
  for (Part part : kParts)
    for (size_t i = 0; i < p.graph.nodes.size(); ++i)
      if (p.graph.part[i] == part && !p.graph.nodes[i].op->view)
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
      out += fmt::format(
          "    {:<22} {:<9} {}{}{}{} = ({}){}\n", n.op->name, i.kernel->name, result.name,
          result.desc.shape.str(),
          is_half(result.desc.dtype) ? fmt::format(" {}", name_of(result.desc.dtype)) : "",
          layout == Layout::plain ? "" : fmt::format(" {}", name_of(layout)), fmt::join(in, ", "),
          i.each_shard   ? "  for each shard"
          : i.cut        ? "  over all shards of the replica"
          : i.first_only ? "  by the first shard's worker"
                         : "");
    }
  }
  return out;
}

}  // namespace dpt
