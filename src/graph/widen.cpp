#include "graph/widen.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/half.h"
#include "graph/attrs.h"
#include "graph/operator.h"

namespace dpt {
namespace {

class Widening {
 public:
  Widening(Graph& graph, std::span<const KernelType> kernels) : graph_(graph), kernels_(kernels) {}

  void run() {
    std::vector<GraphNode> nodes = std::exchange(graph_.nodes, {});
    const std::vector<Part> parts = std::exchange(graph_.part, {});
    for (size_t i = 0; i < nodes.size(); ++i) {
      part_ = parts[i];
      user_ = &nodes[i];
      put(nodes[i]);
    }
    for (ValueId* v : {&graph_.output, &graph_.output_gradient, &graph_.loss}) *v = latest(*v);
    for (ValueId& v : graph_.gradients) v = latest(v);
  }

 private:
  // Where the numbers of a half are; at least one is known.
  struct Half {
    ValueId unrounded = kNoValue;  // f32
    ValueId wide = kNoValue;       // the same numbers as f32
    bool made = false;             // as 16 bits, in the value itself
  };

  bool half(ValueId v) const { return is_half(graph_[v].desc.dtype); }
  ValueId latest(ValueId v) const {
    const auto it = alias_.find(v);
    return it == alias_.end() ? v : it->second;
  }

  bool takes_halves(const GraphNode& n) const {
    KernelQuery query{n.op->name, {}, {}, n.attrs};
    for (ValueId v : n.in) query.in.push_back(graph_[v].desc);
    for (ValueId v : n.out) query.out.push_back(graph_[v].desc);
    return n.op->halves || std::ranges::any_of(kernels_, [&](const KernelType& k) {
             return k.op == query.op && (!k.refuses || k.refuses(query).empty());
           });
  }

  void put(GraphNode& n) {
    for (ValueId& v : n.in) v = latest(v);
    const auto is = [&](ValueId v) { return half(v); };
    if (!std::ranges::any_of(n.in, is) && !std::ranges::any_of(n.out, is)) return push(n);
    if (n.op->name == "cast") return put_cast(n);
    const bool native = n.op->view ? halves_[n.in[0]].made : takes_halves(n);
    for (ValueId& v : n.in)
      if (half(v)) v = native ? made(v) : wide(v);
    for (ValueId& v : n.out) {
      if (!half(v)) continue;
      Half& h = halves_[v];
      h.made = native;
      if (native) continue;
      const ValueId y = add(graph_[v].name, DType::f32, v);
      (n.op->view || n.op->selects ? h.wide : h.unrounded) = y;
      v = y;
    }
    push(n);
  }

  // Nothing is done until somebody reads it.
  void put_cast(const GraphNode& n) {
    const ValueId x = n.in[0], y = n.out[0];
    if (half(y))
      halves_[y].unrounded = half(x) ? wide(x) : x;
    else
      alias_[y] = wide(x);
  }

  ValueId made(ValueId v) {
    if (Half& h = halves_[v]; !h.made) {
      h.made = true;
      push("cast", Cast{graph_[v].desc.dtype}, h.wide != kNoValue ? h.wide : h.unrounded, v);
    }
    return v;
  }

  ValueId wide(ValueId v) {
    Half& h = halves_[v];
    if (h.wide != kNoValue) return h.wide;
    const DType type = graph_[v].desc.dtype;
    if (h.made) {
      h.wide = add(graph_[v].name + ".f32", DType::f32, v);
      push("cast", Cast{DType::f32}, v, h.wide);
    } else {
      const std::string& name = graph_[v].name;
      const std::string ending = fmt::format(".{}", name_of(type));
      h.wide = add(name.ends_with(ending) ? name : name + ending, DType::f32, v);
      push("round_to", Cast{type}, h.unrounded, h.wide);
    }
    return h.wide;
  }

  ValueId add(std::string name, DType type, ValueId like) {
    const TensorDesc& d = graph_[like].desc;
    graph_.values.push_back({.name = std::move(name), .desc = {type, d.shape, d.layout}});
    return static_cast<ValueId>(graph_.values.size()) - 1;
  }

  void push(std::string_view name, Cast attrs, ValueId x, ValueId y) {
    graph_.nodes.push_back({&op(name), attrs, {x}, {y}, user_->layer, user_->where});
    graph_.part.push_back(part_);
  }
  void push(GraphNode& n) {
    graph_.nodes.push_back(std::move(n));
    graph_.part.push_back(part_);
  }

  Graph& graph_;
  std::span<const KernelType> kernels_;
  Part part_ = Part::forward;
  const GraphNode* user_ = nullptr;
  std::map<ValueId, Half> halves_;
  std::map<ValueId, ValueId> alias_;  // of casts to f32 that are not made
};

}  // namespace

void widen_halves(Graph& graph, std::span<const KernelType> kernels) {
  const bool any =
      std::ranges::any_of(graph.values, [](const Value& v) { return is_half(v.desc.dtype); });
  if (any) Widening(graph, kernels).run();
}

}  // namespace dpt
