// softmax: exp(x) / sum of exp(x) over one dimension; any shape.
#include "formats/python_call.h"
#include "graph/attrs.h"
#include "layers/activations/softmax_dimension.h"
#include "layers/layer.h"

namespace dpt::layers {
namespace {

struct SoftmaxLayer {
  static constexpr Usage kUsage{"torch.nn.Softmax",
                                "- softmax\n"
                                "- softmax: {dim: -1}"};

  std::optional<int64_t> dim;

  static KeyTable<SoftmaxLayer> keys() {
    return KeyTable<SoftmaxLayer>().optional(
        "dim", &SoftmaxLayer::dim, "dimension whose probabilities sum to 1; none: dimension 1");
  }
  ValueId build(GraphBuilder& g, ValueId x) const {
    return g.apply("softmax", {x}, Softmax{softmax_dimension("softmax", dim, g.shape(x))});
  }
  std::string torch(const Shape&) const {
    return PythonCall("nn.Softmax").key("dim", dim.value_or(1)).str();
  }
};

}  // namespace

LayerType softmax() {
  return layer_type<SoftmaxLayer>("softmax", "exp(x) / (sum of exp(x)) along one dimension.");
}

}  // namespace dpt::layers
