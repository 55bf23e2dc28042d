#include "export/onnx_graph.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/fail.h"

namespace dpt {
namespace {

// TensorProto.DataType
constexpr int64_t kFloat = 1, kUint8 = 2, kInt64 = 7;

// AttributeProto: the number of the field that holds a value, and of the type that says so.
struct AttributeWriter {
  ProtobufWriter& out;
  void operator()(int64_t x) const { out.integer(3, x).integer(20, 2); }
  void operator()(float x) const { out.number(2, x).integer(20, 1); }
  void operator()(const std::string& x) const { out.text(4, x).integer(20, 3); }
  void operator()(const std::vector<int64_t>& x) const {
    for (const int64_t i : x) out.integer(8, i);
    out.integer(20, 7);
  }
};

std::string_view bytes_of(const void* data, size_t bytes) {
  return {static_cast<const char*>(data), bytes};
}

}  // namespace

OnnxGraph::OnnxGraph(const Graph& graph, std::span<const NamedTensor> tensors) : graph_(graph) {
  for (const NamedTensor& t : tensors) tensors_[t.name] = &t;
  for (const NamedTensor& t : tensors) tensors_.try_emplace(without_wrappers(t.name), &t);
  set(graph.input, unique("input"));
  used_.insert("output");
}

std::string OnnxGraph::unique(const std::string& name) {
  std::string out = name;
  for (int i = 1; !used_.insert(out).second; ++i) out = fmt::format("{}_{}", name, i);
  return out;
}

std::string OnnxGraph::operator[](ValueId v) {
  const auto found = names_.find(v);
  if (found != names_.end()) return found->second;
  return names_[v] = initializer(v);
}

std::string OnnxGraph::initializer(ValueId v) {
  const Value& value = graph_[v];
  require(value.role == Role::parameter || value.role == Role::buffer,
          fmt::format("'{}' is computed before it is read", value.name));
  const auto found = tensors_.find(value.name);
  if (found == tensors_.end())
    fail(Fault::data, "the weights have no '{}'; give those of this model", value.name);
  const TensorDesc& desc = found->second->desc;
  const Shape& wanted = value.desc.shape;
  if (desc.dtype != DType::f32 || desc.shape != wanted)
    fail(Fault::data, "the weights' '{}' is {}{}, but the model's is {}{}", value.name,
         name_of(desc.dtype), desc.shape.str(), name_of(value.desc.dtype), wanted.str());
  std::string name = unique(value.name);
  const auto extents = value.desc.shape.extents();
  add_initializer(name, {extents.begin(), extents.end()}, kFloat,
                  bytes_of(found->second->data, desc.bytes()));
  return name;
}

void OnnxGraph::add_initializer(const std::string& name, const std::vector<int64_t>& extents,
                                int64_t type, std::string_view bytes) {
  ProtobufWriter& tensor = initializers_.emplace_back();
  for (const int64_t extent : extents) tensor.integer(1, extent);
  tensor.integer(2, type).text(8, name).text(9, bytes);
}

std::string OnnxGraph::add(std::string_view op, std::vector<std::string> in,
                           std::vector<OnnxAttribute> attributes) {
  return add_several(op, std::move(in), std::move(attributes), 1)[0];
}

std::vector<std::string> OnnxGraph::add_several(std::string_view op, std::vector<std::string> in,
                                                std::vector<OnnxAttribute> attributes,
                                                size_t results) {
  Node n{.op = std::string(op),
         .name = unique(fmt::format("{}/{}", now_->layer, op)),
         .in = std::move(in),
         .out = {},
         .attributes = std::move(attributes)};
  for (size_t i = 0; i < results; ++i) n.out.push_back(unique(n.name + ":out"));
  nodes_.push_back(std::move(n));
  return nodes_.back().out;
}

std::string OnnxGraph::numbers(const std::vector<int64_t>& extents,
                               const std::vector<float>& values) {
  std::string name = unique(now_->layer + "/constant");
  add_initializer(name, extents, kFloat, bytes_of(values.data(), values.size() * sizeof(float)));
  return name;
}

std::string OnnxGraph::integers(const std::vector<int64_t>& values) {
  std::string name = unique(now_->layer + "/constant");
  add_initializer(name, {static_cast<int64_t>(values.size())}, kInt64,
                  bytes_of(values.data(), values.size() * sizeof(int64_t)));
  return name;
}

ProtobufWriter OnnxGraph::node_message(const Node& n) {
  ProtobufWriter out;
  for (const std::string& name : n.in) out.text(1, name);
  for (const std::string& name : n.out) out.text(2, name);
  out.text(3, n.name).text(4, n.op);
  for (const OnnxAttribute& a : n.attributes) {
    ProtobufWriter attribute;
    attribute.text(1, a.name);
    std::visit(AttributeWriter{attribute}, a.value);
    out.message(5, attribute);
  }
  return out;
}

// A table of all values, so that results have the bits of the program's own.
void OnnxGraph::convert_bytes(std::span<const float> values) {
  constexpr int64_t kBytes = 256;
  const GraphNode node{.layer = "transforms"};
  enter(node);
  std::string index = add("Cast", {names_.at(graph_.input)}, {{"to", kInt64}});
  if (const int64_t channels = std::ssize(values) / kBytes; channels > 1) {
    std::vector<int64_t> first, extents(static_cast<size_t>(shape(graph_.input).rank()) - 1, 1);
    for (int64_t c = 0; c < channels; ++c) first.push_back(c * kBytes);
    extents[0] = channels;
    const std::string name = unique("transforms/constant");
    add_initializer(name, extents, kInt64, bytes_of(first.data(), first.size() * sizeof(int64_t)));
    index = add("Add", {index, name});
  }
  const std::string table = numbers({std::ssize(values)}, {values.begin(), values.end()});
  set(graph_.input, add("Gather", {table, index}));
  of_bytes_ = true;
}

ProtobufWriter OnnxGraph::value_info(const std::string& name, ValueId v, int64_t type_of) const {
  const TensorDesc& desc = graph_[v].desc;
  ProtobufWriter shape, tensor, type, out;
  for (int i = 0; i < desc.shape.rank(); ++i) {
    ProtobufWriter dimension;
    if (i == 0)
      dimension.text(2, "batch");
    else
      dimension.integer(1, desc.shape[i]);
    shape.message(1, dimension);
  }
  tensor.integer(1, type_of).message(2, shape);
  type.message(1, tensor);
  out.text(1, name).message(2, type);
  return out;
}

ProtobufWriter OnnxGraph::finish(const std::string& name) {
  std::string result = (*this)[graph_.output];
  if (nodes_.empty() || graph_.output == graph_.input) {
    const GraphNode none{};
    enter(none);
    result = add("Identity", {result});
  }
  for (Node& n : nodes_) {
    std::ranges::replace(n.in, result, std::string("output"));
    std::ranges::replace(n.out, result, std::string("output"));
  }
  ProtobufWriter out;
  for (const Node& n : nodes_) out.message(1, node_message(n));
  out.text(2, name);
  for (const ProtobufWriter& tensor : initializers_) out.message(5, tensor);
  const auto type = [&](ValueId v) { return graph_[v].desc.dtype == DType::f32 ? kFloat : kInt64; };
  out.message(11, value_info("input", graph_.input, of_bytes_ ? kUint8 : type(graph_.input)));
  out.message(12, value_info("output", graph_.output, type(graph_.output)));
  return out;
}

}  // namespace dpt
