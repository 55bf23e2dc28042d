#include "graph/program/locations.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <queue>

#include "base/checked.h"
#include "base/units.h"
#include "graph/operator.h"

namespace dpt {
namespace {

// The bytes of a value, up to the next cache line.
size_t aligned_bytes(const Graph& graph, ValueId v) {
  return Checked(graph[v].desc.bytes()).rounded_up(kTensorAlignment).size();
}

void add(size_t& bytes, size_t more) { bytes = (Checked(bytes) + more).size(); }

// The first and the last instruction that use a value.
struct Lifetime {
  size_t first = 0, last = 0;
  bool used = false;
};

// The value that owns the memory of `v`: `v` itself, or the value it is a view of.
ValueId owner_of(const std::vector<ValueId>& views, ValueId v) {
  while (views[static_cast<size_t>(v)] != v) v = views[static_cast<size_t>(v)];
  return v;
}

// For each value: itself, or the value it is a view of.
std::vector<ValueId> views_of(const Graph& graph) {
  std::vector<ValueId> out(graph.values.size());
  std::iota(out.begin(), out.end(), 0);
  for (const GraphNode& n : graph.nodes)
    if (n.op->is(Trait::view)) out[static_cast<size_t>(n.out[0])] = n.in[0];
  return out;
}

void locate_flat(Program& p, const FlatLayout& layout) {
  for (size_t i = 0; i < p.graph.parameters.size(); ++i) {
    const size_t bytes = (Checked(layout.offset[i]) * sizeof(float)).size();
    p.location[static_cast<size_t>(p.graph.parameters[i])] = {Arena::weights, bytes};
    const ValueId gradient = p.graph.gradients[i];
    if (gradient != kNoValue && !layout.gradient_in_update[i])
      p.location[static_cast<size_t>(gradient)] = {Arena::gradients, bytes};
  }
  for (size_t i = 0; i < p.graph.buffers.size(); ++i)
    p.location[static_cast<size_t>(p.graph.buffers[i])] = {
        Arena::weights, (Checked(layout.buffer_offset[i]) * sizeof(float)).size()};
  for (const Graph::Update& u : p.graph.updates)
    p.location[static_cast<size_t>(u.next)] = p.location[static_cast<size_t>(u.buffer)];
  for (const GraphNode& n : p.graph.nodes)
    if (n.op->is(Trait::over_shards)) {
      p.location[static_cast<size_t>(n.in[0])] = {Arena::sums, p.sum_bytes};
      add(p.sum_bytes, aligned_bytes(p.graph, n.in[0]));
    }
}

void locate_constants(Program& p) {
  for (size_t v = 0; v < p.location.size(); ++v) {
    const Value& value = p.graph.values[v];
    if (value.role != Role::constant) continue;
    p.location[v] = {Arena::constants, p.constant_bytes};
    add(p.constant_bytes, aligned_bytes(p.graph, static_cast<ValueId>(v)));
  }
}

// The nodes of a part in execution order: by stage, in the backward part from the last stage on.
std::vector<size_t> run_order(const Graph& graph, Part part) {
  std::vector<size_t> out;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].part == part) out.push_back(i);
  const int forward = part == Part::backward ? -1 : 1;
  std::ranges::stable_sort(out, {}, [&](size_t i) { return forward * graph.nodes[i].stage; });
  return out;
}

// For all values that have no location yet.
std::vector<Lifetime> lifetimes(const Program& p, const std::vector<ValueId>& views) {
  const Graph& graph = p.graph;
  std::vector<Lifetime> life(views.size());
  const auto touch = [&](ValueId v, size_t now) {
    if (v == kNoValue) return;
    const auto own = static_cast<size_t>(owner_of(views, v));
    if (p.location[own].arena != Arena::none) return;
    if (!life[own].used) life[own] = {.first = now, .last = now, .used = true};
    life[own].last = std::max(life[own].last, now);
  };
  const auto touch_masks = [&](size_t now) {
    for (ValueId v = 0; v < static_cast<ValueId>(views.size()); ++v)
      if (graph[v].role == Role::mask) touch(v, now);
  };
  for (ValueId v : {graph.input, graph.target, graph.divisor, graph.scale}) touch(v, 0);
  touch_masks(0);
  // Execution order differs from node order: a part's or a stage's nodes may be scattered in the
  // graph.
  size_t now = 0;
  for (Part part : kParts)
    for (size_t i : run_order(graph, part)) {
      const GraphNode& n = graph.nodes[i];
      // Update nodes run interleaved, row by row: all of them count as one instant
      if (part != Part::update) ++now;
      if (part != Part::update)
        for (ValueId v : n.out) touch(v, now);
      for (ValueId v : n.in) touch(v, part == Part::update ? now + 1 : now);
    }
  // The executor reads or fills these values outside of the parts, so they live through the whole
  // step.
  for (ValueId v : {graph.target, graph.divisor, graph.scale, graph.loss, graph.target_weight,
                    graph.correct, graph.output, graph.output_gradient})
    touch(v, now + 1);
  touch_masks(now + 1);
  return life;
}

// For each value: whether a single part of a single stage uses it, so that its memory is free again
// when that part ends.
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
    const Part own = n.part == Part::loss ? Part::forward : n.part;
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

// The bytes of an arena that no value uses at an instant that only moves forward.
class FreeSpace {
 public:
  // Frees what was taken by values whose last use is before `now`.
  void advance(size_t now) {
    while (!taken_.empty() && taken_.top().last < now) {
      const Taken gone = taken_.top();
      taken_.pop();
      release(gone.begin, gone.end);
    }
  }

  // Takes the lowest `size` bytes that are free; returns where they begin.
  size_t take(size_t size, size_t last) {
    auto gap = gaps_.begin();
    while (gap->second - gap->first < size) ++gap;
    const size_t begin = gap->first, end = (Checked(begin) + size).size();
    const size_t gap_end = gap->second;
    gaps_.erase(gap);
    if (end < gap_end) gaps_.emplace(end, gap_end);
    taken_.push({.last = last, .begin = begin, .end = end});
    return begin;
  }

 private:
  struct Taken {
    size_t last, begin, end;
    bool operator<(const Taken& other) const { return last > other.last; }  // the first one on top
  };

  void release(size_t begin, size_t end) {
    auto next = gaps_.lower_bound(end);
    if (next != gaps_.begin())
      if (const auto before = std::prev(next); before->second == begin) {
        begin = before->first;
        gaps_.erase(before);
      }
    if (next != gaps_.end() && next->first == end) {
      end = next->second;
      gaps_.erase(next);
    }
    gaps_.emplace(begin, end);
  }

  std::map<size_t, size_t> gaps_{{0, std::numeric_limits<size_t>::max()}};  // begin to end
  std::priority_queue<Taken> taken_;
};

// Assigns offsets to the values `which`, in order of their first use. Each gets the lowest offset
// that is free during its lifetime. Returns the size of the arena in bytes.
size_t locate_in(Program& p, Arena arena, int stage, const std::vector<Lifetime>& life,
                 const std::vector<ValueId>& which) {
  FreeSpace space;
  size_t top = 0;
  for (ValueId v : which) {
    const Lifetime& mine = life[static_cast<size_t>(v)];
    const size_t copies =
        p.batch_scaling[static_cast<size_t>(v)] == BatchScaling::shard ? p.rows.shards.size() : 1;
    const size_t size = (Checked(p.shard_stride(v)) * copies).size();
    space.advance(mine.first);
    const size_t at = space.take(size, mine.last);
    p.location[static_cast<size_t>(v)] = {.arena = arena, .offset = at, .stage = stage};
    top = std::max(top, at + size);
  }
  return top;
}

void locate_activations(Program& p, const std::vector<ValueId>& views, bool in_flight) {
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
    p.arena.push_back({locate_in(p, Arena::activations, stage, life, those(false)),
                       locate_in(p, Arena::scratch, stage, life, those(true))});
  }
}

}  // namespace

size_t Program::shard_stride(ValueId v) const {
  return std::max(kTensorAlignment, aligned_bytes(graph, v));
}

void assign_locations(Program& p, const FlatLayout& layout, bool in_flight) {
  p.location.resize(p.graph.values.size());
  locate_flat(p, layout);
  locate_constants(p);
  const std::vector<ValueId> views = views_of(p.graph);
  locate_activations(p, views, in_flight);
  for (size_t v = 0; v < views.size(); ++v)
    p.location[v] = p.location[static_cast<size_t>(owner_of(views, static_cast<ValueId>(v)))];
}

}  // namespace dpt
