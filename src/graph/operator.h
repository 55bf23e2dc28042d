// The description of an operator. Each file in graph/operators/ holds an operator and the operators
// of its gradient.
#pragma once

#include <any>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/kernel.h"

namespace dpt {

class GraphBuilder;

// How an operator runs in mixed precision, by torch.autocast's classes (graph/passes/precision.h).
enum class Precision {
  compute,       // in the half: matrix products and convolutions
  full,          // in f32: losses
  full_on_cuda,  // `full` in CUDA's autocast list, `follow` in the CPU's
  statistics,    // like `follow`, even if the whole model is in a half: batch norm
  follow         // in the widest type of its activations; parameters are not cast
};

// Which memory layouts an operator supports (base/tensor.h). All support `plain`.
enum class Layouts {
  plain,
  any,    // element-wise: any layout that all inputs and results share
  images  // values [N, C, ...] of rank 3 to 5 may be channels_last
};

// An example for conformance tests, gradient checks and benchmarks.
struct Sample {
  KernelQuery query;  // floating-point tensors are f32; tests also run it with f64
  struct Range {
    // Float inputs: uniform in [low, high]; integer inputs: low <= i < high
    double low = -2, high = 2;
  };
  std::vector<Range> ranges{};  // for each input; default if missing
  std::vector<double> kinks{};  // gradient checks keep x away from these points
};

struct OperatorType {
  std::string_view name;
  Precision precision;

  // Shapes and dtypes of the results. Throws Error{spec} with the shapes in the message.
  std::vector<TensorDesc> (*infer)(std::span<const TensorDesc> in, const std::any& attrs);

  // Adds the nodes of d loss / d input. Returns one value per input, kNoValue for no gradient. `dy`
  // has one entry per result, kNoValue if the loss does not depend on it. Null: not differentiable.
  std::vector<ValueId> (*gradient)(GraphBuilder& g, const GraphNode& n,
                                   std::span<const ValueId> dy) = nullptr;

  // Reference implementation on host memory for f32 and f64; sums are accumulated in double.
  // Kernels are tested against it, and it runs where a back end has no kernel.
  void (*reference)(const KernelArgs& args, const std::any& attrs);

  // Small examples. A test fails if an operator has none.
  std::vector<Sample> (*samples)();

  // Floating-point operations of one run. Null: one per element of the first result.
  double (*flops)(std::span<const TensorDesc> in, std::span<const TensorDesc> out) = nullptr;

  // The result is the first input's memory with another shape; no kernel runs.
  bool view = false;

  // The input, of which each shard has its own, is summed over the replica's shards (program.h,
  // Note [sync points]). The reference implementation copies it, which is the sum over one shard.
  bool over_shards = false;

  Layouts layouts = Layouts::plain;
  // The reference implementation also supports bf16 and f16; otherwise halves are computed as f32.
  bool halves = false;

  // Each result element is an input element or 0, so results of halves need no rounding.
  bool selects = false;

  // Index of a weight that may be transposed, among the inputs followed by the results; -1: none.
  int weight = -1;
  // Index of the input that is multiplied with the weight, or with the gradient of the result if
  // the weight is a result. Only of operators with a weight.
  int factor = 0;

  // What a node with these attributes does beyond its name: "add,relu". Empty: nothing. Null: the
  // operator has no variants.
  std::string (*variant)(const std::any& attrs) = nullptr;

  // Whether the node computes the moments of the batch, which needs two values per channel.
  bool (*takes_batch_moments)(const std::any& attrs) = nullptr;

  bool backward = false;      // computes gradients from the gradient of a result
  bool random = false;        // draws random numbers
  bool indexes_rows = false;  // the first input has indices of rows of the second

  // In PyTorch's memory, the order of the result's dimensions is that of the first input, although
  // the operator does not support every layout; or the first two dimensions are exchanged
  // (graph/passes/torch_order.h).
  bool keeps_order = false;
  bool sequence_first = false;

  // Why CUDA's autocast does not run the operator, and what to use instead. Empty: it does.
  std::string_view autocast_refuses{};
};

std::span<const OperatorType> operator_table();  // generated from graph/operators/meson.build

const OperatorType& op(std::string_view name);  // REQUIRES: an operator of this name exists

// The operator with its variant, for messages and for `dptrain plan`: "batch_norm{add,relu}".
std::string label_of(const OperatorType& type, const std::any& attrs);
std::string label_of(const GraphNode& n);

}  // namespace dpt
