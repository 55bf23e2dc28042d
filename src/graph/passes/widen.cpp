#include "graph/passes/widen.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/half.h"
#include "graph/attrs.h"
#include "graph/passes/rewriter.h"
#include "graph/passes/uses.h"
#include "graph/program/program.h"

namespace dpt {
namespace {

constexpr size_t kNoNode = Uses::kNoNode;

class Widening : Rewriter {
 public:
  Widening(Graph& graph, std::span<const KernelType> kernels, StoredHalves stored)
      : Rewriter(graph),
        kernels_(kernels),
        between_(stored == StoredHalves::between_products),
        uses_(graph) {}

  void run() {
    each_node([&](GraphNode& n) { put(n); });
    for (ValueId* v : {&graph_.output, &graph_.output_gradient, &graph_.loss}) *v = latest(*v);
    for (ValueId& v : graph_.gradients) v = latest(v);
  }

 private:
  // The values that hold a half's numbers. At least one is known.
  struct Half {
    ValueId unrounded = kNoValue;  // f32, before rounding
    ValueId wide = kNoValue;       // f32, after rounding
    bool made = false;             // stored as 16 bits, in the value itself
    size_t maker = kNoNode;        // index of the node whose first result is `unrounded`
  };

  // The node that computes the f32 value x for one reader alone, as its first result.
  size_t maker_for_one(ValueId x) const {
    const auto it = makers_.find(x);
    return between_ && it != makers_.end() && uses_.count(x) == 1 ? it->second : kNoNode;
  }

  bool half(ValueId v) const { return is_half(graph_[v].desc.dtype); }
  ValueId latest(ValueId v) const {
    const auto it = alias_.find(v);
    return it == alias_.end() ? v : it->second;
  }

  bool takes_halves(const GraphNode& n) {
    if (n.op->is(Trait::halves)) return true;
    KernelQuery query = query_of(graph_, n);
    if (between_ && n.op->precision != Precision::compute) {
      if (std::ranges::none_of(n.in, [&](ValueId v) { return half(v) && halves_[v].made; }))
        return false;
      if (n.op->layouts == Layouts::images) set_images_last(query);
    }
    return std::ranges::any_of(kernels_, [&](const KernelType& k) {
      return k.op == query.op && (!k.refuses || k.refuses(query).empty());
    });
  }

  // The layouts that choose_layouts() will give an operator without weights.
  static void set_images_last(KernelQuery& query) {
    for (auto* side : {&query.in, &query.out})
      for (TensorDesc& d : *side)
        if (d.shape.rank() >= 3 && d.shape.rank() <= 5) d.layout = Layout::channels_last;
  }

  // The half of all floating-point inputs but statistics; f32 if they differ.
  DType half_of_inputs(const GraphNode& n) const {
    DType out = DType::f32;
    for (ValueId v : n.in) {
      if (statistics_.contains(v)) continue;
      const DType type = graph_[v].desc.dtype;
      if (type != DType::f32 && !is_half(type)) continue;
      if (type == DType::f32 || (out != DType::f32 && out != type)) return DType::f32;
      out = type;
    }
    return out;
  }

  void put(GraphNode& n) {
    for (ValueId& v : n.in) v = latest(v);
    for (size_t i = 1; i < n.out.size(); ++i)
      if (graph_[n.out[i]].desc.dtype == DType::f32) statistics_.insert(n.out[i]);
    const auto is = [&](ValueId v) { return half(v); };
    if (!std::ranges::any_of(n.in, is) && !std::ranges::any_of(n.out, is)) {
      remember_maker(n);
      return push(std::move(n));
    }
    if (n.op == &cast_) return put_cast(n);
    const bool native = n.op->is(Trait::view) ? halves_[n.in[0]].made : takes_halves(n);
    if (!native) n.rounded_inputs = half_of_inputs(n);
    for (ValueId& v : n.in)
      if (half(v)) v = native ? made(v, n) : wide(v, n);
    for (ValueId& v : n.out) {
      if (!half(v)) continue;
      Half& h = halves_[v];
      h.made = native;
      if (native) continue;
      const ValueId y = f32(graph_[v].name, v);
      (n.op->is(Trait::view) || n.op->is(Trait::selects) ? h.wide : h.unrounded) = y;
      if (v == n.out[0]) h.maker = graph_.nodes.size();
      v = y;
    }
    remember_maker(n);
    push(std::move(n));
  }

  // Called for a node that is about to be pushed.
  void remember_maker(const GraphNode& n) {
    const ValueId y = n.out.empty() ? kNoValue : n.out[0];
    if (y != kNoValue && uses_.knows(y) && !n.op->is(Trait::view) &&
        graph_[y].desc.dtype == DType::f32)
      makers_[y] = graph_.nodes.size();
  }

  // A cast is not inserted until a node reads its result. If nothing else reads what it casts, the
  // node that computes this may round it.
  void put_cast(const GraphNode& n) {
    const ValueId x = n.in[0], y = n.out[0];
    if (!half(y)) {
      alias_[y] = wide(x, n);
    } else if (half(x)) {
      halves_[y].unrounded = wide(x, n);
    } else {
      halves_[y].unrounded = x;
      halves_[y].maker = maker_for_one(x);
    }
  }

  ValueId made(ValueId v, const GraphNode& user) {
    if (Half& h = halves_[v]; !h.made) {
      h.made = true;
      insert("cast", Cast{graph_[v].desc.dtype}, h.wide != kNoValue ? h.wide : h.unrounded, v,
             user);
    }
    return v;
  }

  ValueId wide(ValueId v, const GraphNode& user) {
    Half& h = halves_[v];
    if (h.wide != kNoValue) return h.wide;
    const DType type = graph_[v].desc.dtype;
    if (h.made) {
      h.wide = f32(graph_[v].name + ".f32", v);
      insert("cast", Cast{DType::f32}, v, h.wide, user);
    } else if (h.maker != kNoNode) {
      graph_.nodes[h.maker].rounds = type;
      h.wide = h.unrounded;
    } else {
      const std::string& name = graph_[v].name;
      const std::string ending = fmt::format(".{}", name_of(type));
      h.wide = f32(name.ends_with(ending) ? name : name + ending, v);
      insert("round_to", Cast{type}, h.unrounded, h.wide, user);
    }
    return h.wide;
  }

  ValueId f32(std::string name, ValueId like) {
    const TensorDesc& d = graph_[like].desc;
    return add({.name = std::move(name), .desc = {DType::f32, d.shape, d.layout}});
  }

  std::span<const KernelType> kernels_;
  bool between_;
  const OperatorType& cast_ = op("cast");
  std::map<ValueId, Half> halves_;
  std::set<ValueId> statistics_;      // what nodes compute in f32 beside a first result in halves
  Uses uses_;                         // before this pass
  std::map<ValueId, size_t> makers_;  // of f32 values: the index of their node
  std::map<ValueId, ValueId> alias_;  // replacements for the results of casts to f32
};

}  // namespace

void widen_halves(Graph& graph, std::span<const KernelType> kernels, StoredHalves stored) {
  const bool any =
      std::ranges::any_of(graph.values, [](const Value& v) { return is_half(v.desc.dtype); });
  if (any) Widening(graph, kernels, stored).run();
}

}  // namespace dpt
