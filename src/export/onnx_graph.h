// An ONNX graph that is being made: its nodes, constants and names. Field numbers are those of
// onnx/onnx.proto.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "formats/protobuf_writer.h"
#include "formats/safetensors.h"
#include "graph/graph.h"

namespace dpt {

struct OnnxAttribute {
  std::string_view name;
  std::variant<int64_t, float, std::string, std::vector<int64_t>> value;
};

class OnnxGraph {
 public:
  // REQUIRES: `graph` and `tensors` outlive this object.
  OnnxGraph(const Graph& graph, std::span<const NamedTensor> tensors);

  const Graph& graph() const { return graph_; }
  const Shape& shape(ValueId v) const { return graph_[v].desc.shape; }
  // Operators that follow belong to this node of the graph: for names.
  void enter(const GraphNode& n) { now_ = &n; }

  // The ONNX name of a value. Parameters and buffers become initializers when they are first named.
  std::string operator[](ValueId v);
  void set(ValueId v, std::string name) { names_[v] = std::move(name); }

  // Adds an operator with one result and returns the result's name. Empty names of inputs are
  // inputs that are left out.
  std::string add(std::string_view op, std::vector<std::string> in,
                  std::vector<OnnxAttribute> attributes = {});
  // The same with several results.
  std::vector<std::string> add_several(std::string_view op, std::vector<std::string> in,
                                       std::vector<OnnxAttribute> attributes, size_t results);

  // Constants. A shape without elements is a scalar.
  std::string numbers(const std::vector<int64_t>& extents, const std::vector<float>& values);
  std::string number(double value) { return numbers({}, {static_cast<float>(value)}); }
  std::string integers(const std::vector<int64_t>& values);

  // The model's input is bytes (uint8), and the graph's input what they become: values [256] of
  // all, or [channels, 256]. Call it first.
  void convert_bytes(std::span<const float> values);

  // The GraphProto. Names the result of the model `output`.
  ProtobufWriter finish(const std::string& name);

 private:
  struct Node {
    std::string op, name;
    std::vector<std::string> in, out;
    std::vector<OnnxAttribute> attributes;
  };
  std::string unique(const std::string& name);
  std::string initializer(ValueId v);
  void add_initializer(const std::string& name, const std::vector<int64_t>& extents, int64_t type,
                       std::string_view bytes);
  static ProtobufWriter node_message(const Node& n);
  ProtobufWriter value_info(const std::string& name, ValueId v, int64_t type) const;

  const Graph& graph_;
  std::map<std::string, const NamedTensor*, std::less<>> tensors_;
  const GraphNode* now_ = nullptr;
  bool of_bytes_ = false;  // convert_bytes() was called
  std::map<ValueId, std::string> names_;
  std::set<std::string> used_;
  std::vector<Node> nodes_;
  std::vector<ProtobufWriter> initializers_;
};

// Adds the ONNX operators of a node. REQUIRES: its inputs have names.
using OnnxTranslation = void (*)(OnnxGraph& to, const GraphNode& n);
struct OnnxOperator {
  std::string_view name;
  OnnxTranslation translate;
};
std::span<const OnnxOperator> onnx_image_operators();  // convolutions, pooling, resizing
std::span<const OnnxOperator> onnx_norm_operators();
std::span<const OnnxOperator> onnx_other_operators();

}  // namespace dpt
