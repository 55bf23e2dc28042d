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
  pool,          // `full` in the CPU's autocast list for volumes, else `follow`
  statistics,    // like `follow`, even if the whole model is in a half: batch norm
  follow         // in the widest type of its activations; parameters are not cast
};

// Which memory layouts an operator supports (base/tensor.h). All support `plain`.
enum class Layouts {
  plain,
  any,    // element-wise: any layout that all inputs and results share
  images  // values [N, C, ...] of rank 3 to 5 may be channels_last
};

// What passes ask of an operator.
enum class Trait : unsigned {
  view = 1,          // the result is the first input's memory with another shape; no kernel runs
  backward = 2,      // computes gradients from the gradient of a result
  random = 4,        // draws random numbers
  indexes_rows = 8,  // the first input has indices of rows of the second
  // Each result element is an input element or 0, so results of halves need no rounding.
  selects = 16,
  // The reference implementation also supports bf16 and f16; otherwise halves are computed as f32.
  halves = 32,
  // The input, of which each shard has its own, is summed over the replica's shards (program.h,
  // Note [sync points]). The reference implementation copies it, which is the sum over one shard.
  over_shards = 64
};
class Traits {
 public:
  constexpr Traits() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a trait is a set of one
  constexpr Traits(Trait one) : bits_(static_cast<unsigned>(one)) {}
  constexpr bool has(Trait t) const { return (bits_ & static_cast<unsigned>(t)) != 0; }
  friend constexpr Traits operator|(Traits a, Traits b) {
    a.bits_ |= b.bits_;
    return a;
  }

 private:
  unsigned bits_ = 0;
};
constexpr Traits operator|(Trait a, Trait b) { return Traits(a) | Traits(b); }

// The order of the result's dimensions in PyTorch's memory (graph/passes/torch_order.h).
enum class TorchOrder {
  by_layouts,  // Layouts::any: of_first; images: image; plain: row_major
  row_major,
  of_first,           // that of the first input
  image,              // channels_last if the first input is, for [N, C, H, W]
  image_or_sequence,  // the same, and for [N, C, L]
  sequence_first,     // the first two dimensions are exchanged
  of_sequence_first   // likewise if the first input is the result of such an operator
};

// The weight of a product, as an index among the inputs followed by the results, and the input that
// is multiplied with it, or with the gradient of the result if the weight is a result.
struct WeightOf {
  int index = -1;  // -1: none
  int factor = 0;
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

  // Floating-point operations of one run. Null: one per element of the first result.
  double (*flops)(std::span<const TensorDesc> in, std::span<const TensorDesc> out) = nullptr;

  Layouts layouts = Layouts::plain;
  TorchOrder torch_order = TorchOrder::by_layouts;
  WeightOf weight{};  // it may be transposed
  Traits traits{};

  // What a node with these attributes does beyond its name: "add,relu". Empty: nothing. Null: the
  // operator has no variants.
  std::string (*variant)(const std::any& attrs) = nullptr;

  // Whether the node computes the moments of the batch, which needs two values per channel.
  bool (*takes_batch_moments)(const std::any& attrs) = nullptr;

  // Why CUDA's autocast does not run the operator, and what to use instead. Empty: it does.
  std::string_view autocast_refuses{};

  bool is(Trait t) const { return traits.has(t); }
};

std::span<const OperatorType> operator_table();  // generated from graph/operators/meson.build

const OperatorType& op(std::string_view name);  // REQUIRES: an operator of this name exists

// The operator with its variant, for messages and for `dptrain plan`: "batch_norm{add,relu}".
std::string label_of(const OperatorType& type, const std::any& attrs);
std::string label_of(const GraphNode& n);

}  // namespace dpt
