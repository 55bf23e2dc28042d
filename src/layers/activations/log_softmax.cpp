// log_softmax: x - log(sum of exp(x)) over one dimension; any shape.
#include "formats/python_call.h"
#include "graph/attrs.h"
#include "layers/activations/softmax_dimension.h"
#include "layers/layer.h"

namespace dpt::layers {
namespace {

struct LogSoftmaxLayer {
  static constexpr Usage kUsage{"torch.nn.LogSoftmax",
                                "- log_softmax\n"
                                "- log_softmax: {dim: -1}"};

  std::optional<int64_t> dim;

  static KeyTable<LogSoftmaxLayer> keys() {
    return KeyTable<LogSoftmaxLayer>().optional(
        "dim", &LogSoftmaxLayer::dim, "dimension whose probabilities sum to 1; none: dimension 1");
  }
  ValueId build(GraphBuilder& g, ValueId x) const {
    return g.apply("log_softmax", {x}, Softmax{softmax_dimension("log_softmax", dim, g.shape(x))});
  }
  std::string torch(const Shape&) const {
    return PythonCall("nn.LogSoftmax").key("dim", dim.value_or(1)).str();
  }
};

}  // namespace

LayerType log_softmax() {
  return layer_type<LogSoftmaxLayer>(
      "log_softmax", "Logarithm of softmax: x - log(sum of exp(x)) along one dimension.");
}

}  // namespace dpt::layers
