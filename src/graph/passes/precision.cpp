#include "graph/passes/precision.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/fail.h"
#include "base/half.h"
#include "graph/attrs.h"
#include "graph/passes/rewriter.h"

namespace dpt {
namespace {

using Level = PrecisionPolicy::Level;

bool is_short(DType t) { return t == DType::f32 || is_half(t); }

class Autocast : Rewriter {
 public:
  Autocast(Graph& graph, const PrecisionPolicy& policy) : Rewriter(graph), policy_(policy) {}

  void run() {
    bool left = false;
    each_node([&](GraphNode& n) {
      if (part_ != Part::forward && !std::exchange(left, true)) leave_model();
      retype(n);
      push(std::move(n));
    });
    if (!left) leave_model();
  }

 private:
  // Whether the dtype of v counts where an operator follows its inputs: parameters do not.
  bool decides(ValueId v) const {
    const Value& value = graph_[v];
    return is_short(value.desc.dtype) &&
           (value.role == Role::activation || value.role == Role::input);
  }
  bool may_cast(ValueId v) const {
    return is_short(graph_[v].desc.dtype) && graph_[v].role != Role::mask;
  }

  // From o2 on the model is in the half, whatever the precision classes of its operators.
  bool in_model() const { return policy_.level >= Level::model && part_ == Part::forward; }
  bool full(const GraphNode& n) const {
    if (in_model()) return false;
    if (n.op->precision == Precision::full_on_cuda) return policy_.cuda_lists;
    if (n.op->precision == Precision::pool)
      return !policy_.cuda_lists && graph_[n.in[0]].desc.shape.rank() == 5;
    return n.op->precision == Precision::full;
  }
  bool follows(const GraphNode& n) const {
    if (n.op->precision == Precision::statistics) return true;
    return !in_model() && !full(n) && n.op->precision != Precision::compute;
  }

  DType widest(const GraphNode& n) const {
    DType out = policy_.half;
    bool any = false;
    for (ValueId v : n.in) {
      if (!decides(v)) continue;
      any = true;
      if (graph_[v].desc.dtype == DType::f32) out = DType::f32;
    }
    return any ? out : DType::f32;
  }

  void retype(GraphNode& n) {
    if (policy_.cuda_lists && !n.op->autocast_refuses.empty())
      fail(Fault::spec, "{} cannot run in mixed precision on CUDA, and torch refuses it too: {}",
           n.op->name, n.op->autocast_refuses);
    for (ValueId& v : n.in)
      if (const auto it = replaced_.find(v); it != replaced_.end()) v = it->second;
    if (follows(n)) {
      const DType type = widest(n);
      for (ValueId& v : n.in)
        if (decides(v)) v = as(type, v, n);
    } else {
      const DType type = full(n) ? DType::f32 : policy_.half;
      for (ValueId& v : n.in)
        if (may_cast(v)) v = as(type, v, n);
    }
    std::vector<TensorDesc> in;
    for (ValueId v : n.in) in.push_back(graph_[v].desc);
    const std::vector<TensorDesc> out = n.op->infer(in, n.attrs);
    for (size_t i = 0; i < out.size(); ++i)
      graph_.values[static_cast<size_t>(n.out[i])].desc.dtype = out[i].dtype;
  }

  // Casts the model's output to f32 and inserts the operator that scales its gradient.
  void leave_model() {
    const ValueId output = graph_.output;
    if (output == kNoValue) return;
    const GraphNode last = graph_.nodes.empty() ? GraphNode{} : graph_.nodes.back();
    const Part part = std::exchange(part_, Part::forward);
    graph_.output = as(DType::f32, output, last);
    replaced_[output] = graph_.output;
    part_ = part;
    if (!policy_.scales || graph_.divisor == kNoValue) return;
    graph_.scale = add({.name = "scale", .desc = {DType::f32, {1}}, .role = Role::divisor});
    const ValueId scaled = add({.name = "scaled", .desc = graph_[graph_.output].desc});
    part_ = Part::loss;
    push({.op = &op("scale_gradient"),
          .attrs = {},
          .in = {graph_.output, graph_.scale},
          .out = {scaled},
          .layer = "loss",
          .where = last.where,
          .stage = last.stage});
    part_ = part;
    replaced_[output] = replaced_[graph_.output] = scaled;
  }

  ValueId as(DType type, ValueId v, const GraphNode& user) {
    const TensorDesc d = graph_[v].desc;
    if (d.dtype == type) return v;
    const auto [made, first] = casts_.try_emplace({v, type}, kNoValue);
    if (first) {
      made->second = add({.name = fmt::format("{}.{}", graph_[v].name, name_of(type)),
                          .desc = {type, d.shape, d.layout}});
      insert("cast", Cast{type}, v, made->second, user);
    }
    return made->second;
  }

  const PrecisionPolicy& policy_;
  std::map<std::pair<ValueId, DType>, ValueId> casts_;
  std::map<ValueId, ValueId> replaced_;
};

}  // namespace

std::string text_of(const PrecisionPolicy& policy) {
  static constexpr std::string_view kWhat[] = {"nothing in it", "",
                                               "all but batch normalization, from weights in fp32",
                                               "all but batch normalization, and the weights"};
  const auto level = static_cast<size_t>(policy.level);
  return fmt::format(
      "{}, o{}: {}", policy.half == DType::bf16 ? "bf16" : "fp16", level,
      policy.level == Level::autocast
          ? fmt::format("by autocast's list of {}", policy.cuda_lists ? "CUDA" : "the CPU")
          : std::string(kWhat[level]));
}

void apply_precision(Graph& graph, const PrecisionPolicy& policy) {
  if (policy.on()) Autocast(graph, policy).run();
}

}  // namespace dpt
