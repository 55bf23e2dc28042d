// Puts a Graph together; knows which layer of the spec it is building, for names and errors.
#pragma once

#include <any>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/operator.h"

namespace dpt {

// The largest tensor that a graph may hold. Anything larger is a mistake in a spec, and below these
// limits the offsets and counts that kernels compute cannot wrap around: extents fit into 32 bits,
// and a sum over all tensors of a model fits into 64.
inline constexpr int64_t kMostExtent = 2147483647;
inline constexpr int64_t kMostElements = int64_t{1} << 40;

// Every value of a graph is added through one of its functions, which throw Error{spec} for a
// tensor beyond the limits above.
class GraphBuilder {
 public:
  // What is common to all layers of one build.
  struct Mode {
    bool training = true;      // false: dropout and the like do nothing
    bool torch_masks = false;  // dropout takes masks that torch's generator draws
    // Running statistics move once for all chunks that a pipeline is given at once.
    bool deferred_batch_norm = false;
  };
  GraphBuilder(Graph& graph, Mode mode) : graph_(graph), mode_(mode) {}
  explicit GraphBuilder(Graph& graph) : GraphBuilder(graph, Mode{}) {}

  const Mode& mode() const { return mode_; }

  // The layer that is being built: names of its parameters begin with it, errors name its place.
  void enter(std::string name, Span where, bool trainable = true);
  void part(Part part) { part_ = part; }
  // What follows is on this device: the stage goes on, or the next one begins, whether or not the
  // layers so far have added nodes: so a model has as many stages when it is evaluated, where
  // dropout adds none.
  void device(int device);
  void stage(int stage) { stage_ = stage; }
  void range(int range) { range_ = range; }  // graph/passes/recompute.h
  const std::string& scope() const { return scope_; }

  ValueId input(std::string name, TensorDesc desc, Role role = Role::input);
  ValueId constant(std::string_view name, Shape shape, std::vector<double> content);
  ValueId mask(TensorDesc desc, double keep);
  ValueId parameter(std::string_view name, Shape shape, Init init);

  // What is kept from step to step, all elements `first` at the beginning; saved: in files, too.
  ValueId buffer(std::string_view name, TensorDesc desc, double first, bool saved = true);
  void update(ValueId buffer, ValueId next) { graph_.updates.push_back({buffer, next}); }

  // Adds a node and gives its first result.
  ValueId apply(const OperatorType& op, std::vector<ValueId> in, std::any attrs = {});
  ValueId apply(std::string_view name, std::vector<ValueId> in, std::any attrs = {}) {
    return apply(op(name), std::move(in), std::move(attrs));
  }

  // By value: adding a node moves the values.
  TensorDesc desc(ValueId v) const { return graph_[v].desc; }
  Shape shape(ValueId v) const { return graph_[v].desc.shape; }
  Graph& graph() { return graph_; }

 private:
  ValueId add(Value value);
  Graph& graph_;
  Mode mode_;
  std::string scope_;
  Span where_;
  bool trainable_ = true;
  Part part_ = Part::forward;
  int stage_ = 0, range_ = 0;
  bool on_device_ = false;  // device() was called
};

// Adds the gradient of graph.loss with respect to the model's output (Part::loss) and to every
// trainable parameter (Part::backward). Sets graph.gradients and graph.output_gradient.
void differentiate(Graph& graph);

}  // namespace dpt
