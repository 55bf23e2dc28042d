// A graph compiled for so many rows: for each node the first kernel that takes it, for each value
// its place in memory.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/kernel.h"

namespace dpt {

// Where the parameters lie in the flat buffers of weights, gradients and optimizer states: those
// whose gradients are stored first, in the order in which backward completes them, then fused ones,
// which have no gradient buffer, then frozen ones and buffers (weights only). Offsets and sizes in
// elements; each parameter begins at a cache line.
//
// Note [fused]: the gradient of a linear layer's weight, dy^T x, is far larger than dy and x. Where
// nobody asks for the gradient itself, the optimizer's pass makes it from the dy and x of all
// shards: some rows, one chain over the samples of all shards in their order, the update, the next
// rows. So the number of shards neither costs anything here nor changes a bit. What workers read of
// each other is factors in the place of products (Xie et al., "Lighter-Communication Distributed
// Machine Learning via Sufficient Factor Broadcasting", 2016), and a gradient never leaves the
// cache of the core that uses it.
struct FlatLayout {
  std::vector<size_t> offset;         // of each of graph.parameters
  std::vector<bool> fused;            // the same
  size_t stored = 0;                  // elements of the gradient buffers
  size_t trainable = 0;               // elements of the state buffers
  std::vector<size_t> buffer_offset;  // of each of graph.buffers, in the weight buffer
  size_t total = 0;                   // elements of the weight buffer
};
// fused: of each parameter; empty: none. REQUIRES: differentiated.
FlatLayout flat_layout(const Graph& graph, std::vector<bool> fused = {});

// Of each value: the parameter of which it is the gradient, as an index into graph.parameters, or
// kNoParameter.
inline constexpr auto kNoParameter = static_cast<size_t>(-1);
std::vector<size_t> parameters_by_gradient(const Graph& graph);

// Which parameters can be fused: their gradients are made by one node that nothing else reads, with
// a kernel that makes rows. Recomputation (graph/passes/recompute.h) does not change the answer: a
// fused gradient sums in another order than a stored one, so `checkpoint` would change bits. A
// recomputed input of a fused gradient is therefore kept until the update.
std::vector<bool> fusible(const Graph& graph, std::span<const KernelType> kernels);

// A tensor in one of a worker's memories. Offsets in bytes.
enum class Arena { none, weights, gradients, sums, activations, scratch, constants };
struct Slice {
  Arena arena = Arena::none;
  size_t offset = 0;
  int stage = 0;  // of activations and scratch: in whose memory
};

// Bytes that a stage needs for one micro-batch (graph.h, note [stages]).
struct StageBytes {
  size_t kept = 0;     // Arena::activations: from its forward part to its backward part
  size_t scratch = 0;  // within one of the two, so that all micro-batches share it
};

struct Instruction {
  size_t node = 0;  // of the graph
  const KernelType* kernel = nullptr;
  const KernelType* rounding = nullptr;  // what rounds the first result after it
  bool each_shard = false;               // run for each shard of the group
  bool cut = false;                      // note [cuts]
  bool first_only = false;  // run by the first group alone: it makes the next value of a buffer
  std::vector<std::string> refusals;  // "avx512: ..." of the rows above the chosen one
};

// Note [groups]: consecutive shards of one worker, a group, are computed as one batch, where no bit
// shows it: where all kernels that have results for each sample make them whatever the number of
// samples (KernelType::by_sample). What sums over samples is run for each shard, on its rows.
struct GroupRows {
  std::vector<int64_t> shards;  // rows of each; some may be empty, not all
  int64_t largest = 0;          // rows of the largest shard of the (micro-)batch, of all groups
  int64_t total() const;
  auto operator<=>(const GroupRows&) const = default;
};

// What a kernel is asked to run a node. rows: of the group of shards, where it is known.
KernelQuery query_of(const Graph& graph, const GraphNode& node, const GroupRows& rows = {});
inline KernelQuery query_of(const Graph& graph, size_t node, const GroupRows& rows = {}) {
  return query_of(graph, graph.nodes[node], rows);
}
// The first row that takes it. Throws Error{device} where none does.
Instruction choose_kernel(const Graph& graph, size_t node, std::span<const KernelType> kernels,
                          const GroupRows& rows = {});

// The kernel of query_of(...), with the rounding that follows it.
std::unique_ptr<Kernel> prepare(const Instruction& chosen, const KernelQuery& query);

// Note [cuts]: what batch normalisation sums over the batch is summed over the shards of a replica
// in the middle of a part. There the part is cut: each shard has left its sums where all can read
// them (Arena::sums, the same place in every program), all meet, and every group adds those of its
// replica in the fixed tree.

// Of what a value has a part.
enum class Extent { common, sample, shard };

// REQUIRES: the kernel list outlives it.
struct Program {
  GroupRows rows;
  Graph graph;  // of the whole group
  // The same of one shard, by its rows; empty where the group has one shard that is not empty.
  std::map<int64_t, Graph> shard_graphs;
  std::vector<Extent> extent;  // of each value
  // Of each value; views lie where what they view lies. A value that each shard has lies at that of
  // the first, the next ones follow.
  std::vector<Slice> place;
  std::vector<Instruction> prologue, forward, loss, backward;
  std::vector<Instruction> update;  // note [fused]
  std::vector<StageBytes> arena;    // of each stage
  size_t constant_bytes = 0;
  size_t sum_bytes = 0;  // of each shard
  const std::vector<Instruction>& part(Part p) const;
  bool by_sample() const;  // the group's results have the bits of its shards', one by one
  size_t shard_stride(ValueId v) const;  // bytes between the places of a value that each shard has
  std::string str() const;
};

// Chooses a kernel for each node and gives each value its place; two values share memory where no
// instruction needs both. Gradients of fused parameters get none. graph_of: the graph of so many
// rows; the same nodes whatever the number. in_flight: a stage begins further micro-batches before
// it has ended this one; else all lies in Arena::activations. REQUIRES: `layout` is of a graph with
// the same parameters.
Program compile(const GroupRows& rows, const std::function<Graph(int64_t rows)>& graph_of,
                std::span<const KernelType> kernels, const FlatLayout& layout,
                bool in_flight = false);
// One shard of as many rows as the graph's input.
Program compile(Graph graph, std::span<const KernelType> kernels, const FlatLayout& layout);

}  // namespace dpt
