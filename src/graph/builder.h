// Builds a Graph node by node, and knows which layer of the spec it is building for names and
// errors.
#pragma once

#include <any>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/operator.h"

namespace dpt {

// Limits of a tensor's size. They catch mistakes in a spec, and guarantee that offsets and counts
// cannot overflow: an extent fits into 32 bits, and a sum over all tensors of a model into 64.
inline constexpr int64_t kMostExtent = 2147483647;
inline constexpr int64_t kMostElements = int64_t{1} << 40;

// Every function that adds a value throws Error{spec} if its tensor exceeds the limits above.
class GraphBuilder {
 public:
  // Settings that all layers of one build share.
  struct Mode {
    bool training = true;      // false: layers such as dropout add no nodes
    bool torch_masks = false;  // dropout masks are drawn by PyTorch's generator (`random: torch`)
    // Running statistics are updated once for all chunks that a pipeline is given at once, rather
    // than for each chunk.
    bool deferred_batch_norm = false;
  };
  GraphBuilder(Graph& graph, Mode mode) : graph_(graph), mode_(mode) {}
  explicit GraphBuilder(Graph& graph) : GraphBuilder(graph, Mode{}) {}

  const Mode& mode() const { return mode_; }

  // Starts a layer: `name` prefixes the names of its parameters, and errors refer to `where`.
  void enter(std::string name, Span where, bool trainable = true);
  void part(Part part) { part_ = part; }
  // Sets the device of the layers that follow; a change of device begins a new stage. Stages count
  // even if their layers add no nodes, so that a model has the same stages in training and in
  // evaluation, where dropout adds no nodes.
  void device(int device);
  void stage(int stage) { stage_ = stage; }
  // Recomputation range, 0: none (graph/passes/recompute.h)
  void range(int range) { range_ = range; }
  const std::string& scope() const { return scope_; }

  ValueId input(std::string name, TensorDesc desc, Role role = Role::input);
  ValueId constant(std::string_view name, Shape shape, std::vector<double> content);
  ValueId mask(TensorDesc desc, double keep);
  ValueId parameter(std::string_view name, Shape shape, Init init);

  // A tensor that is kept between steps, with all elements `first` initially. saved: it is part of
  // the state_dict.
  ValueId buffer(std::string_view name, TensorDesc desc, double first, bool saved = true);
  void update(ValueId buffer, ValueId next) { graph_.updates.push_back({buffer, next}); }

  // Adds a node and returns its first result.
  ValueId apply(const OperatorType& op, std::vector<ValueId> in, std::any attrs = {});
  ValueId apply(std::string_view name, std::vector<ValueId> in, std::any attrs = {}) {
    return apply(op(name), std::move(in), std::move(attrs));
  }

  // All results of the node that was added last.
  const std::vector<ValueId>& results() const { return graph_.nodes.back().out; }

  // Returned by value, because adding a node may reallocate Graph::values.
  TensorDesc desc(ValueId v) const { return graph_[v].desc; }
  Shape shape(ValueId v) const { return graph_[v].desc.shape; }
  Graph& graph() { return graph_; }

 private:
  ValueId add(Value value);
  std::shared_ptr<const Origin> origin(Origin origin);
  Graph& graph_;
  Mode mode_;
  std::string scope_;
  Span where_;
  bool trainable_ = true;
  Part part_ = Part::forward;
  int stage_ = 0, range_ = 0;
  bool on_device_ = false;                                // device() was called
  std::array<std::shared_ptr<const Origin>, 8> origins_;  // the last ones; equal layers repeat them
};

// Adds the gradient of graph.loss with respect to the model's output (Part::loss) and to every
// trainable parameter (Part::backward). Sets graph.gradients and graph.output_gradient.
void differentiate(Graph& graph);

}  // namespace dpt
