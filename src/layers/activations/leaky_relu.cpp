// leaky_relu: x if x > 0, else negative_slope * x; any shape.
#include "formats/python_call.h"
#include "graph/attrs.h"
#include "layers/layer.h"

namespace dpt::layers {
namespace {

struct LeakyReluLayer {
  static constexpr Usage kUsage{"torch.nn.LeakyReLU",
                                "- leaky_relu\n"
                                "- leaky_relu: {negative_slope: 0.2}"};

  double negative_slope = 0.01;

  static KeyTable<LeakyReluLayer> keys() {
    return KeyTable<LeakyReluLayer>().optional("negative_slope", &LeakyReluLayer::negative_slope,
                                               "slope for negative x");
  }
  ValueId build(GraphBuilder& g, ValueId x) const {
    return g.apply("leaky_relu", {x}, LeakyRelu{negative_slope});
  }
  std::string torch(const Shape&) const {
    return PythonCall("nn.LeakyReLU").key("negative_slope", negative_slope, 0.01).str();
  }
};

}  // namespace

LayerType leaky_relu() {
  return layer_type<LeakyReluLayer>("leaky_relu", "x, or negative_slope * x if x is negative.");
}

}  // namespace dpt::layers
