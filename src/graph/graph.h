// A training step of one shard as data: values, and nodes that compute values from other values.
#pragma once

#include <any>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "spec/source.h"

namespace dpt {

struct OperatorType;
using ValueId = int;
inline constexpr ValueId kNoValue = -1;

enum class Role {
  input,     // the samples of the batch
  target,    // labels or target values
  divisor,   // f32[1]: the loss is divided by it, or its gradient multiplied; equal for all shards
  mask,      // dropout mask, drawn by the executor under `random: torch`
  constant,  // small tensor given in the spec, such as class weights
  parameter,
  buffer,     // kept between steps beside the parameters, such as running statistics
  activation  // result of a node
};

// How a parameter is initialized. All draws come from PyTorch's CPU generator, in the order in
// which parameters were added, unless `after` says otherwise. The defaults are those of the
// constructors in torch.nn.
struct Init {
  // truncated: normal, redrawn until the number lies in [low, high]
  enum class Kind { constant, uniform, normal, truncated } kind = Kind::constant;
  double a = 0, b = 0;    // constant: a; uniform: [a, b); normal: mean a, standard deviation b
  int64_t zero_row = -1;  // embedding: the padding row, set to 0 after the draw
  double low = 0, high = 0;
  int after = 0;  // draw this parameter after so many of the parameters that were added later
  bool operator==(const Init&) const = default;
};

// Where the elements of a value come from that no node computes.
struct Origin {
  Init init{};  // parameters and buffers
  // parameters: drawn after all parameters have drawn `init`; replaces it
  std::optional<Init> reinit{};
  std::vector<double> content{};  // constants
  double probability = 0;         // masks: probability that an element is kept
  bool operator==(const Origin&) const = default;
};

struct Value {
  std::string name;  // "lin1.weight", as in PyTorch's state_dict
  TensorDesc desc;
  Role role = Role::activation;
  bool trainable = true;  // parameters: false where the spec says `freeze`
  bool saved = true;      // buffers: part of PyTorch's state_dict
  // Of parameters, buffers, constants and masks, a third of the values; null: others. Values with
  // equal origins share one.
  std::shared_ptr<const Origin> origin{};
  void reinitialise(const Init& init);  // sets Origin::reinit. REQUIRES: a parameter
};

// The part of a training step that a node belongs to. The loss is separate because DataParallel
// computes it on one device: outputs are gathered there and their gradients scattered. prologue:
// sums over targets, if they decide what the loss divides by. update: weight gradients that are
// computed inside the optimizer update (program.h, Note [fused gradients]).
enum class Part { prologue, forward, loss, backward, update };

struct GraphNode {
  const OperatorType* op;
  std::any attrs;
  std::vector<ValueId> in, out;
  std::string layer;  // "lin1", for messages and for `dptrain plan`
  Span where;         // line of the spec that made this node
  int stage = 0;      // the stage that runs it, see Note [stages]
  Part part = Part::forward;
  // Forward nodes: the recomputation range (graph/passes/recompute.h), 0: none. A node that
  // recomputes another one in the backward part has that node's range; other backward nodes have 0.
  int range = 0;
  // If a half: the first result is f32, rounded to the half's precision (graph/passes/widen.h).
  DType rounds = DType::f32;
  // If a half: the inputs that are f32 hold numbers of this half (graph/passes/widen.h).
  DType rounded_inputs = DType::f32;
};

// Note [stages]: a stage is a run of consecutive layers on one device; a new stage begins where the
// device changes. A value of an earlier stage that a later stage reads is copied to the later
// stage's memory (graph/passes/stages.h), and its gradient is copied back. Gradient nodes belong to
// the stage of the node they differentiate; the loss belongs to the last stage. Most graphs have
// one stage.

// The stage in whose memory a node's results lie: the node's own, except for a gradient that is
// copied back to an earlier stage.
int home_of(const GraphNode& n);
bool is_stage_copy(const GraphNode& n);  // it copies a value to the memory of another stage

// Nodes are in an order in which they can run. GraphBuilder makes a graph; passes rewrite it.
struct Graph {
  std::vector<Value> values;
  std::vector<GraphNode> nodes;

  ValueId input = kNoValue, target = kNoValue, divisor = kNoValue;
  ValueId scale = kNoValue;            // f32[1]: loss scale, if gradients are scaled
  ValueId output = kNoValue;           // the model's output
  ValueId output_gradient = kNoValue;  // d loss / d output, if the graph is differentiated
  ValueId loss = kNoValue;             // f64[1]: this shard's part; the loss is the sum over shards
  // f64[1]: this shard's part of the divisor, if the targets decide the divisor
  ValueId target_weight = kNoValue;
  // f64[1]: number of correctly classified samples, if the loss has classes
  ValueId correct = kNoValue;
  std::vector<ValueId> parameters;  // in PyTorch's order, that of Module.parameters()
  std::vector<ValueId> buffers;     // in PyTorch's order
  struct Update {
    ValueId buffer, next;  // each step replaces `buffer` by `next`, in the same memory
  };
  std::vector<Update> updates;
  // For each parameter; kNoValue: frozen, or the graph is not differentiated
  std::vector<ValueId> gradients;
  std::vector<int> stage_device = {0};  // device of each stage, see Note [stages]
  int stages() const { return static_cast<int>(stage_device.size()); }
  // For each value, the stage in whose memory it lies; for parameters and buffers, the stage that
  // uses them.
  std::vector<int> homes() const;

  const Value& operator[](ValueId v) const { return values[static_cast<size_t>(v)]; }
  void erase_nodes(const std::vector<bool>& drop);  // drop: for each node
  // The parameters and buffers in PyTorch's state_dict, in its order.
  std::vector<ValueId> state() const;
  // Sync points of a part (program.h, Note [sync points]); stage -1: of all stages
  int sync_points(Part part, int stage = -1) const;
  std::vector<bool> trained() const;  // for each value: whether it depends on a trainable parameter
  double flops() const;               // sum over all nodes
  double flops(const GraphNode& node) const;
  std::string str() const;  // one line per node; the format is stable, golden tests compare it
};

}  // namespace dpt
