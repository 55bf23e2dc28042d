// A training step as a list of things to do, made before the first batch. Every worker has the same
// plan; parallel modes are rewrites of it. It prints as stable text: `dptrain plan`.
//
// The global batch is cut into shards. A Program is what is computed for one shard of a given
// size: the graph in run order, with kernels chosen and memory planned. A Plan says when the
// parts of it are run, by whom, and where workers meet.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/kernel.h"

namespace dpt {

// Where the parameters lie in the flat buffers of weights, gradients and optimizer states:
// trainable ones first, in the order in which backward completes their gradients, then frozen ones
// (weights only). Offsets and sizes in elements; each parameter begins at a cache line.
struct FlatLayout {
  std::vector<size_t> offset;  // of each of graph.parameters
  size_t trainable = 0;        // elements of the gradient and state buffers
  size_t total = 0;            // elements of the weight buffer
};
FlatLayout flat_layout(const Graph& graph);  // REQUIRES: differentiated

// A tensor in one of a worker's memories. Offsets in bytes.
enum class Arena { none, weights, gradients, activations, constants };
struct Slice {
  Arena arena = Arena::none;
  size_t offset = 0;
};

struct Instruction {
  size_t node = 0;  // of the graph
  const KernelType* kernel = nullptr;
  std::vector<std::string> refusals;  // "avx512: ..." of the rows above the chosen one
};

// REQUIRES: the kernel list outlives it.
struct Program {
  Graph graph;
  std::vector<Slice> place;  // of each value; views lie where what they view lies
  std::vector<Instruction> prologue, forward, loss, backward;
  size_t activation_bytes = 0, constant_bytes = 0;
  const std::vector<Instruction>& part(Part p) const;
  std::string str() const;
};

// Chooses a kernel for each node and gives each value its place; two values share memory where no
// instruction needs both. REQUIRES: `layout` is of a graph with the same parameters.
Program compile(Graph graph, std::span<const KernelType> kernels, const FlatLayout& layout);

// What a stage is made of.
enum class Action {
  feed,          // gather the shard's rows of the batch, convert, transform: input and target
  feed_targets,  // targets only, for the prologue
  draw_masks,    // dropout's masks, by torch's generator, in its order
  prologue,      // the nodes of that part
  forward,
  loss,
  backward,
  gather,       // outputs to the loss's device: one memory, so nothing is copied
  scatter,      // their gradients back
  sum_divisor,  // what the loss divides by, summed over all shards
  sum_loss,     // over all shards; a loss that is no number ends the run before the update
  sum_squares,  // of the summed gradients, for clipping by norm
  update        // sum the shards' gradients in the fixed tree, then the optimizer, in one pass
};

struct Stage {
  enum class Who {
    shards,       // for each shard in turn: its owner runs all actions
    loss_device,  // for each shard: a worker of the device that computes the loss
    workers,      // every worker once, on its own range of elements
    first         // the first worker of each process
  };
  Who who = Who::shards;
  std::vector<Action> actions;
  bool meet = false;  // afterwards all workers meet
};

struct Plan {
  std::string mode = "single";
  std::vector<Stage> prologue;  // once a step, over all micro-batches
  std::vector<Stage> micro;     // for each micro-batch
  std::vector<Stage> update;    // once a step
  bool splits_shards() const;   // a shard's activations outlive a stage
  std::string str() const;
};

// The plan of one worker that has the whole batch: no communication. Modes rewrite it.
struct PlanQuery {
  bool divisor_from_targets = false;
  bool clip_norm = false;
  bool torch_masks = false;
};
Plan basic_plan(const PlanQuery& query);

}  // namespace dpt
