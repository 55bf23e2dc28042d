// softplus: log(1 + exp(beta * x)) / beta, or x if beta * x > threshold; any shape.
#include "formats/python_call.h"
#include "graph/attrs.h"
#include "layers/layer.h"

namespace dpt::layers {
namespace {

struct SoftplusLayer {
  static constexpr Usage kUsage{"torch.nn.Softplus",
                                "- softplus\n"
                                "- softplus: {beta: 2, threshold: 30}"};

  double beta = 1, threshold = 20;

  static KeyTable<SoftplusLayer> keys() {
    return KeyTable<SoftplusLayer>()
        .optional("beta", &SoftplusLayer::beta, "sharpness of the bend", kPositive)
        .optional("threshold", &SoftplusLayer::threshold,
                  "the function is linear if beta * x is above this");
  }
  ValueId build(GraphBuilder& g, ValueId x) const {
    return g.apply("softplus", {x}, Softplus{beta, threshold});
  }
  std::string torch(const Shape&) const {
    return PythonCall("nn.Softplus").key("beta", beta, 1).key("threshold", threshold, 20).str();
  }
};

}  // namespace

LayerType softplus() {
  return layer_type<SoftplusLayer>("softplus", "Smooth ReLU: log(1 + exp(beta * x)) / beta.");
}

}  // namespace dpt::layers
