// What an operator must say about itself. One file in graph/operators/ holds an operator and those
// of its gradient.
#pragma once

#include <any>
#include <span>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/kernel.h"

namespace dpt {

class GraphBuilder;

// How an operator runs in mixed precision: the classes of torch's autocast
// (graph/passes/precision.h).
enum class Precision {
  compute,       // in the half: products
  full,          // in f32: losses
  full_on_cuda,  // as `full` by CUDA's list, as `follow` by the CPU's
  statistics,    // as `follow`, even where the whole model is in a half: batch normalisation
  follow         // in the widest type of what other layers give it; parameters stay as they are
};

// Which layouts its values may have (base/tensor.h). `plain` is always one of them.
enum class Layouts {
  plain,
  any,    // element by element: whatever all its inputs and results have in common
  images  // those that are [N, C, ...] with 3 or 4 extents may be channels_last
};

// A case for conformance tests, gradient checks and benchmarks: shapes, settings, and what the
// inputs may hold.
struct Sample {
  KernelQuery query;  // real inputs and results as f32; tests also run it with f64 in their place
  struct Range {
    double low = -2, high = 2;  // real inputs: uniform in it; integer inputs: low <= i < high
  };
  std::vector<Range> ranges{};  // for each input; missing: the default
  std::vector<double> kinks{};  // x near one of these is moved away before differences are taken
};

struct OperatorType {
  std::string_view name;
  Precision precision;

  // Shapes and dtypes of the results. Throws Error{Fault::spec} with the shapes in the message.
  std::vector<TensorDesc> (*infer)(std::span<const TensorDesc> in, const std::any& attrs);

  // Adds the nodes of d loss / d input and gives a value for each input, kNoValue for none. `dy`
  // has an entry for each result, kNoValue where nothing depends on it. Null: no gradient.
  std::vector<ValueId> (*gradient)(GraphBuilder& g, const GraphNode& n,
                                   std::span<const ValueId> dy);

  // Plain loops on host memory for f32 and f64, sums in double: what every fast kernel is compared
  // with, and what runs where there is none.
  void (*reference)(const KernelArgs& args, const std::any& attrs);

  // Small cases; an operator without one fails a test.
  std::vector<Sample> (*samples)();

  // Floating-point operations of one run. Null: one for each element of the first result.
  double (*flops)(std::span<const TensorDesc> in, std::span<const TensorDesc> out) = nullptr;

  // The result is the first input's memory seen with another shape; nothing is run.
  bool view = false;

  // Its input, which every shard has, is summed over the shards of the replica (program.h, note
  // [cuts]); the loops copy it, as they do for one shard.
  bool over_shards = false;

  Layouts layouts = Layouts::plain;
  // Its loops and copies take bf16 and f16 as well; those of all others, f32 in their place.
  bool halves = false;

  // Its results are numbers of its inputs, or 0: of halves they need no rounding.
  bool selects = false;

  // A weight, which may be transposed: its place among the inputs and, behind them, the results;
  // -1: there is none.
  int weight = -1;
};

std::span<const OperatorType> operator_table();  // generated from graph/operators/meson.build

const OperatorType& op(std::string_view name);  // REQUIRES: there is one of that name

}  // namespace dpt
