// gelu: x * Phi(x), Phi: the standard normal distribution (Hendrycks and Gimpel, 2016); with
// approximate: tanh, 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))). Any shape.
#include "layers/layer.h"

namespace dpt::layers {
namespace {

struct GeluLayer {
  static constexpr Usage kUsage{"torch.nn.GELU",
                                "- gelu\n"
                                "- gelu: {approximate: tanh}"};

  std::string approximate = "none";

  static KeyTable<GeluLayer> keys() {
    return KeyTable<GeluLayer>().choice(
        "approximate", &GeluLayer::approximate, {"none", "tanh"},
        "tanh: the approximation by tanh instead of the error function");
  }
  ValueId build(GraphBuilder& g, ValueId x) const {
    return g.apply(approximate == "tanh" ? "gelu_tanh" : "gelu", {x});
  }
};

}  // namespace

LayerType gelu() {
  return layer_type<GeluLayer>(
      "gelu", "Gaussian error linear unit: x times the normal distribution function of x.");
}

}  // namespace dpt::layers
