#include "graph/builder.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/fail.h"
#include "graph/attrs.h"

namespace dpt {
namespace {

void check_limits(const Shape& shape) {
  int64_t left = kMostElements;  // how many elements the remaining dimensions may have in total
  for (const int64_t extent : shape.extents()) {
    if (extent < 0 || extent > kMostExtent || extent > left)
      fail(Fault::spec,
           "this would create a tensor of shape {}; a tensor may have at most 2^31 - 1 elements "
           "along one "
           "dimension, and 2^40 in all: use smaller sizes",
           shape.str());
    left /= std::max<int64_t>(1, extent);
  }
}

}  // namespace

void Value::reinitialise(const Init& init) {
  auto changed = std::make_shared<Origin>(*origin);
  changed->reinit = init;
  origin = std::move(changed);
}

void GraphBuilder::enter(std::string name, Span where, bool trainable) {
  scope_ = std::move(name);
  where_ = where;
  trainable_ = trainable;
}

void GraphBuilder::device(int device) {
  std::vector<int>& devices = graph_.stage_device;
  if (!std::exchange(on_device_, true))
    devices = {device};
  else if (devices.back() != device)
    devices.push_back(device);
  stage_ = graph_.stages() - 1;
}

ValueId GraphBuilder::add(Value value) {
  check_limits(value.desc.shape);
  graph_.values.push_back(std::move(value));
  return static_cast<ValueId>(graph_.values.size()) - 1;
}

std::shared_ptr<const Origin> GraphBuilder::origin(Origin origin) {
  for (const auto& known : origins_)
    if (known && *known == origin) return known;
  std::rotate(origins_.begin(), origins_.end() - 1, origins_.end());
  return origins_[0] = std::make_shared<const Origin>(std::move(origin));
}

ValueId GraphBuilder::input(std::string name, TensorDesc desc, Role role) {
  return add({.name = std::move(name), .desc = desc, .role = role});
}

ValueId GraphBuilder::constant(std::string_view name, Shape shape, std::vector<double> content) {
  return add({.name = fmt::format("{}.{}", scope_, name),
              .desc = {DType::f32, shape},
              .role = Role::constant,
              .origin = origin({.content = std::move(content)})});
}

ValueId GraphBuilder::mask(TensorDesc desc, double keep) {
  return add({.name = fmt::format("{}.mask", scope_),
              .desc = desc,
              .role = Role::mask,
              .origin = origin({.probability = keep})});
}

ValueId GraphBuilder::parameter(std::string_view name, Shape shape, Init init) {
  const ValueId v = add({.name = fmt::format("{}.{}", scope_, name),
                         .desc = {DType::f32, shape},
                         .role = Role::parameter,
                         .trainable = trainable_,
                         .origin = origin({.init = init})});
  graph_.parameters.push_back(v);
  graph_.gradients.push_back(kNoValue);
  return v;
}

ValueId GraphBuilder::buffer(std::string_view name, TensorDesc desc, double first, bool saved) {
  const ValueId v = add({.name = fmt::format("{}.{}", scope_, name),
                         .desc = desc,
                         .role = Role::buffer,
                         .saved = saved,
                         .origin = origin({.init = {.a = first}})});
  graph_.buffers.push_back(v);
  return v;
}

ValueId GraphBuilder::apply(const OperatorType& op, std::vector<ValueId> in, std::any attrs) {
  std::vector<TensorDesc> descs;
  for (ValueId v : in) descs.push_back(desc(v));
  GraphNode node{.op = &op,
                 .attrs = std::move(attrs),
                 .in = std::move(in),
                 .out = {},
                 .layer = scope_,
                 .where = where_,
                 .stage = stage_,
                 .part = part_,
                 .range = part_ == Part::forward ? range_ : 0};
  for (const TensorDesc& out : op.infer(descs, node.attrs))
    node.out.push_back(add({.name = fmt::format("{}.{}", scope_, op.name), .desc = out}));
  graph_.nodes.push_back(std::move(node));
  return graph_.nodes.back().out.at(0);
}

void Graph::erase_nodes(const std::vector<bool>& drop) {
  size_t i = 0;
  std::erase_if(nodes, [&](const GraphNode&) { return drop[i++]; });
}

std::vector<ValueId> Graph::state() const {
  std::vector<ValueId> out = parameters;
  std::ranges::copy_if(buffers, std::back_inserter(out),
                       [&](ValueId v) { return (*this)[v].saved; });
  std::ranges::sort(out);
  return out;
}

int home_of(const GraphNode& n) {
  const auto* copied = std::any_cast<Copy>(&n.attrs);
  return copied ? copied->to : n.stage;
}

bool is_stage_copy(const GraphNode& n) { return std::any_cast<Copy>(&n.attrs) != nullptr; }

std::vector<int> Graph::homes() const {
  std::vector<int> out(values.size(), 0);
  for (ValueId v : {target, divisor, scale})
    if (v != kNoValue) out[static_cast<size_t>(v)] = stages() - 1;
  for (const GraphNode& n : nodes) {
    for (ValueId v : n.in)
      if (const Role r = (*this)[v].role;
          r == Role::parameter || r == Role::buffer || r == Role::mask || r == Role::constant)
        out[static_cast<size_t>(v)] = n.stage;
    for (ValueId v : n.out) out[static_cast<size_t>(v)] = home_of(n);
  }
  return out;
}

std::vector<bool> Graph::trained() const {
  std::vector<bool> out(values.size());
  for (ValueId p : parameters) out[static_cast<size_t>(p)] = (*this)[p].trainable;
  for (const GraphNode& n : nodes)
    if (std::ranges::any_of(n.in, [&](ValueId v) { return out[static_cast<size_t>(v)]; }))
      for (ValueId v : n.out) out[static_cast<size_t>(v)] = true;
  return out;
}

int Graph::sync_points(Part wanted, int stage) const {
  int count = 0;
  for (const GraphNode& n : nodes)
    if (n.part == wanted && n.op->is(Trait::over_shards) && (stage < 0 || n.stage == stage))
      ++count;
  return count;
}

double Graph::flops() const {
  double sum = 0;
  for (const GraphNode& n : nodes) sum += flops(n);
  return sum;
}

double Graph::flops(const GraphNode& n) const {
  if (n.op->is(Trait::view)) return 0;
  std::vector<TensorDesc> in, out;
  for (ValueId v : n.in) in.push_back((*this)[v].desc);
  for (ValueId v : n.out) out.push_back((*this)[v].desc);
  return n.op->flops ? n.op->flops(in, out) : static_cast<double>(out[0].shape.elements());
}

std::string Graph::str() const {
  std::string out;
  for (const GraphNode& n : nodes) {
    std::vector<std::string> args;
    for (ValueId v : n.in) args.push_back((*this)[v].name);
    const Value& r = (*this)[n.out.at(0)];
    out += fmt::format("{} {}{} = {}({})\n", r.name, name_of(r.desc.dtype), r.desc.shape.str(),
                       label_of(n), fmt::join(args, ", "));
  }
  return out;
}

const OperatorType& op(std::string_view name) {
  for (const OperatorType& t : operator_table())
    if (t.name == name) return t;
  fail(Fault::failed, "no operator '{}'", name);
}

std::string label_of(const OperatorType& type, const std::any& attrs) {
  const std::string variant = type.variant ? type.variant(attrs) : "";
  return variant.empty() ? std::string(type.name) : fmt::format("{}{{{}}}", type.name, variant);
}

std::string label_of(const GraphNode& n) { return label_of(*n.op, n.attrs); }

}  // namespace dpt
