// elu: x if x > 0, else alpha * (exp(x) - 1); any shape (Clevert et al., 2016).
#include "formats/python_call.h"
#include "graph/attrs.h"
#include "layers/layer.h"

namespace dpt::layers {
namespace {

struct EluLayer {
  static constexpr Usage kUsage{"torch.nn.ELU",
                                "- elu\n"
                                "- elu: {alpha: 0.5}"};

  double alpha = 1;

  static KeyTable<EluLayer> keys() {
    return KeyTable<EluLayer>().optional("alpha", &EluLayer::alpha,
                                         "the output approaches -alpha for very negative x");
  }
  ValueId build(GraphBuilder& g, ValueId x) const { return g.apply("elu", {x}, Elu{alpha}); }
  std::string torch(const Shape&) const {
    return PythonCall("nn.ELU").key("alpha", alpha, 1).str();
  }
};

}  // namespace

LayerType elu() {
  return layer_type<EluLayer>(
      "elu", "Exponential linear unit: x, or alpha * (exp(x) - 1) if x is negative.");
}

}  // namespace dpt::layers
