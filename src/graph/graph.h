// The computation as data: values, and nodes that make values out of values.
#pragma once

#include <any>
#include <cstdint>
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
  target,    // what they should come out as
  divisor,   // f32[1]: what the loss is divided by, or its gradient multiplied by; the same for
             // every shard of a batch
  mask,      // what dropout keeps, drawn by the executor where `random: torch` is asked for
  constant,  // small, given in the spec: class weights
  parameter,
  buffer,     // kept from step to step beside the parameters: running statistics
  activation  // made by a node
};

// How a parameter gets its first values; all draws come from torch's generator, in the order in
// which parameters were added unless `after` says otherwise (pytorch_semantics, default
// initialisation).
struct Init {
  // truncated: a normal distribution, drawn again where it is not in [low, high]
  enum class Kind { constant, uniform, normal, truncated } kind = Kind::constant;
  double a = 0, b = 0;    // constant: a; uniform: [a, b); normal: mean a, deviation b
  int64_t zero_row = -1;  // embedding's padding row, zeroed after the draw
  double low = 0, high = 0;
  int after = 0;  // it is drawn after so many of the parameters that were added behind it
};

struct Value {
  std::string name;  // "lin1.weight", as in torch's state_dict
  TensorDesc desc;
  Role role = Role::activation;
  Init init{};                    // parameters and buffers
  std::optional<Init> reinit{};   // parameters: drawn over `init` once all have theirs
  bool trainable = true;          // parameters: false where the spec says `freeze`
  std::vector<double> content{};  // constants
  double probability = 0;         // masks: the share of elements that is kept
  bool saved = true;              // buffers: torch's state_dict has it
};

struct GraphNode {
  const OperatorType* op;
  std::any attrs;
  std::vector<ValueId> in, out;
  std::string layer;  // "lin1", for messages and plans
  Span where;         // the line of the spec that asked for it
  int stage = 0;      // note [stages]: whose worker runs it
  // To be computed again (graph/passes/recompute.h), or in the backward part: what is; 0: neither.
  int range = 0;
  // A half: the first result, f32, is rounded to its numbers (graph/passes/widen.h).
  DType rounds = DType::f32;
};

// Note [stages]: layers that follow each other on one device make a stage; where another device
// begins, another stage does. What a later stage reads of an earlier one is copied there
// (graph/passes/stages.h), its gradient back. A gradient's nodes belong to the stage of what it is
// the gradient of; the loss belongs to the last stage. Most graphs have one stage.

// The stage in whose memory a node's results lie: its own, but for a gradient that is copied back.
int home_of(const GraphNode& n);

// Which part of a training step a node belongs to. The loss is a part of its own, since
// DataParallel computes it on another device than the rest (output gathered there, its gradient
// scattered back). update: gradients of weights that the optimizer's pass makes itself, program.h.
enum class Part { prologue, forward, loss, backward, update };

// Nodes stand in an order in which they can run. Only GraphBuilder adds to one.
struct Graph {
  std::vector<Value> values;
  std::vector<GraphNode> nodes;
  std::vector<Part> part;  // of each node

  ValueId input = kNoValue, target = kNoValue, divisor = kNoValue;
  ValueId scale = kNoValue;            // f32[1]: of the loss, where gradients are scaled
  ValueId output = kNoValue;           // of the model
  ValueId output_gradient = kNoValue;  // d loss / d output, where the graph trains
  ValueId loss = kNoValue;  // f64[1]: this shard's share; the sum over shards is the loss
  ValueId target_weight =
      kNoValue;  // f64[1]: this shard's share of the divisor, where the targets decide it
  ValueId correct =
      kNoValue;  // f64[1]: how many samples are classified right, where that has a meaning
  std::vector<ValueId> parameters;  // in the order in which they were added, torch's
  std::vector<ValueId> buffers;     // the same
  struct Update {
    ValueId buffer, next;  // what a step makes of it, in the same memory
  };
  std::vector<Update> updates;
  std::vector<ValueId>
      gradients;  // of each parameter; kNoValue: frozen, or the graph does not train
  std::vector<int> stage_device = {0};  // the device of each stage; note [stages]
  int stages() const { return static_cast<int>(stage_device.size()); }
  // Of each value: where it lies; parameters and buffers: the stage that uses them.
  std::vector<int> homes() const;

  const Value& operator[](ValueId v) const { return values[static_cast<size_t>(v)]; }
  // Parameters and buffers in torch's state_dict, in their order.
  std::vector<ValueId> state() const;
  int cuts(Part part, int stage = -1) const;  // program.h, note [cuts]; -1: of all stages
  std::vector<bool> trained() const;          // of each value: some trainable parameter decides it
  double flops() const;                       // of all nodes
  double flops(const GraphNode& node) const;
  std::string str() const;  // one line a node, stable: golden tests compare it
};

}  // namespace dpt
