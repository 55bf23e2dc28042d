// A graph compiled for given batch sizes: a kernel for each node and a memory location for each
// value.
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

// The order of parameters in the flat buffers of weights, gradients and optimizer states. First
// come parameters with stored gradients, in the order in which the backward part completes them.
// Then come parameters with fused gradients, which have no gradient buffer. Frozen parameters and
// buffers follow; these exist in the weight buffer only. Offsets and sizes are in elements
// (floats), and each parameter begins at a cache line.
//
// Note [fused gradients]: the gradient of a linear layer's weight, dy^T x, is far larger than dy
// and x. Unless the gradient itself is needed, the optimizer update computes it from dy and x of
// all shards, a few rows at a time: one chain of additions over the samples of all shards in their
// order, then the update of these rows. So the number of shards costs nothing here and does not
// change the bits. Workers read each other's factors instead of products (Xie et al.,
// "Lighter-Communication Distributed Machine Learning via Sufficient Factor Broadcasting", 2016),
// and a gradient never leaves the cache of the core that uses it.
struct FlatLayout {
  std::vector<size_t> offset;            // of each parameter in graph.parameters
  std::vector<bool> gradient_in_update;  // of each parameter: note [fused gradients]
  size_t stored = 0;                     // elements of a gradient buffer
  size_t trainable = 0;                  // elements of an optimizer state buffer
  std::vector<size_t> buffer_offset;     // of each of graph.buffers, in the weight buffer
  size_t total = 0;                      // elements of the weight buffer
};
// fused: for each parameter; empty: none. REQUIRES: the graph is differentiated.
FlatLayout flat_layout(const Graph& graph, std::vector<bool> fused = {});

// For each value: the index in graph.parameters of the parameter whose gradient it is, or
// kNoParameter.
inline constexpr auto kNoParameter = static_cast<size_t>(-1);
std::vector<size_t> parameters_by_gradient(const Graph& graph);

// Which parameters may have fused gradients: one node computes the gradient, no node reads it, and
// its kernel has makes_rows. The answer is the same with recomputation (graph/passes/recompute.h):
// fused and stored gradients are summed in different orders, so `checkpoint` would otherwise change
// bits. A recomputed input of a fused gradient is therefore kept until the update.
std::vector<bool> parameters_with_fusible_gradients(const Graph& graph,
                                                    std::span<const KernelType> kernels);

// The location of a tensor in a worker's memory. Offsets are in bytes.
enum class Arena { none, weights, gradients, sums, activations, scratch, constants };
struct Location {
  Arena arena = Arena::none;
  size_t offset = 0;
  int stage = 0;  // activations and scratch: the stage whose memory this is
};

// Bytes that a stage needs for one micro-batch (graph.h, Note [stages]).
struct StageBytes {
  size_t kept = 0;     // Arena::activations: lives from the forward to the backward part
  size_t scratch = 0;  // Arena::scratch: lives within one part, so all micro-batches share it
};

struct Instruction {
  size_t node = 0;  // index in graph.nodes
  const KernelType* kernel = nullptr;
  const KernelType* rounding = nullptr;  // rounds the first result afterwards; null: none
  bool each_shard = false;               // runs once per shard of the group
  bool sync_point = false;               // a sync point, Note [sync points]
  bool first_only = false;  // only the first group runs it: it computes the next value of a buffer
  std::vector<std::string> refusals;  // "avx512: ..." for each entry before the chosen one
};

// Note [shard groups]: consecutive shards of one worker form a shard group and are computed as one
// batch if this changes no bit: if every kernel with per-sample results is independent of the
// number of samples (KernelType::by_sample). Operators that sum over samples run once per shard, on
// its rows.
struct ShardGroupRows {
  std::vector<int64_t> shards;  // samples of each shard; some may be 0, but not all
  int64_t largest = 0;  // samples of the largest shard of the (micro-)batch, over all groups
  int64_t total() const;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy takes its 0 for a pointer
  auto operator<=>(const ShardGroupRows&) const = default;
};

// The question that kernels are asked for a node. rows: of the shard group, if known.
KernelQuery query_of(const Graph& graph, const GraphNode& node, const ShardGroupRows& rows = {});
inline KernelQuery query_of(const Graph& graph, size_t node, const ShardGroupRows& rows = {}) {
  return query_of(graph, graph.nodes[node], rows);
}
// The first entry that accepts the node. Throws Error{device} if there is none.
Instruction choose_kernel(const Graph& graph, size_t node, std::span<const KernelType> kernels,
                          const ShardGroupRows& rows = {});

// The kernel for query_of(...), followed by its rounding if it needs one.
std::unique_ptr<Kernel> prepare(const Instruction& chosen, const KernelQuery& query);

// Note [sync points]: batch normalization sums its statistics over all shards of a replica in the
// middle of a part. The part is split there, at a sync point: each shard leaves its sums in shared
// memory (Arena::sums, at the same offset in every program), all workers pass a barrier, and each
// group adds the sums of its replica's shards in the fixed tree.

// How a value's size scales with the batch: not at all (weights, sums over all shards), with the
// number of samples, or with the number of shards (sums over one shard).
enum class BatchScaling { common, sample, shard };

// REQUIRES: the kernel list outlives the program.
struct Program {
  ShardGroupRows rows;
  Graph graph;  // for the whole group
  // For one shard, by its number of samples. Empty if at most one shard of the group has samples.
  std::map<int64_t, Graph> shard_graphs;
  std::vector<BatchScaling> batch_scaling;  // of each value
  // Each value's memory. A view has the location of the value it views. For BatchScaling::shard it
  // is the location of the first shard's copy; those of the other shards follow, shard_stride()
  // bytes apart.
  std::vector<Location> location;
  std::vector<Instruction> prologue, forward, loss, backward;
  std::vector<Instruction> update;  // see Note [fused gradients]
  std::vector<StageBytes> arena;    // of each stage
  size_t constant_bytes = 0;
  size_t sum_bytes = 0;  // of Arena::sums, per shard
  const std::vector<Instruction>& part(Part p) const;
  bool by_sample() const;  // computing the group gives each shard's bits
  // Bytes between the copies of a value with BatchScaling::shard.
  size_t shard_stride(ValueId v) const;
  std::string str() const;
};

// Chooses kernels and assigns memory locations. Values share memory if their lifetimes do not
// overlap. Fused gradients get no memory. graph_of(n) must return the graph for n samples; its
// nodes must not depend on n. in_flight: a stage may begin further micro-batches before it finishes
// this one, so values that live within a part go to Arena::scratch; otherwise all go to
// Arena::activations. REQUIRES: `layout` is of a graph with the same parameters.
Program compile(const ShardGroupRows& rows, const std::function<Graph(int64_t rows)>& graph_of,
                std::span<const KernelType> kernels, const FlatLayout& layout,
                bool in_flight = false);
// A program for one shard; the graph's input decides the number of samples.
Program compile(Graph graph, std::span<const KernelType> kernels, const FlatLayout& layout);

}  // namespace dpt
