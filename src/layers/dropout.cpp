// dropout (Srivastava et al., 2014): in training, sets each element to 0 with probability p and
// divides the others by 1 - p. The identity in evaluation. Any shape.
#include "formats/python_call.h"
#include "graph/attrs.h"
#include "graph/passes/torch_order.h"
#include "layers/dropout_number.h"
#include "layers/layer.h"

namespace dpt::layers {
namespace {

struct DropoutLayer {
  static constexpr Usage kUsage{"torch.nn.Dropout",
                                "- dropout\n"
                                "- dropout: {p: 0.2}"};

  double p = 0.5;

  static KeyTable<DropoutLayer> keys() {
    return KeyTable<DropoutLayer>().optional(
        "p", &DropoutLayer::p, "probability that an element becomes zero", kProbability);
  }

  ValueId build(GraphBuilder& g, ValueId x) const {
    if (!g.mode().training || p == 0) return x;
    // For p = 1 PyTorch draws no random numbers either, and the counter-based mask is all zeros.
    if (!g.mode().torch_masks || p == 1)
      return g.apply("dropout", {x}, Dropout{p, dropout_number(g)});
    const ValueId mask = g.mask(g.desc(x), 1 - p);
    // PyTorch divides the mask by 1 - p in f32.
    const float scale = 1.0F / static_cast<float>(1 - p);
    return g.apply("masked", {x, mask}, Masked{scale, torch_order(g.graph(), x)});
  }

  std::string torch(const Shape&) const { return PythonCall("nn.Dropout").arg(p).str(); }
};

}  // namespace

LayerType dropout() {
  return layer_type<DropoutLayer>(
      "dropout", "Sets random elements to zero in training and scales the others by 1 / (1 - p).");
}

}  // namespace dpt::layers
