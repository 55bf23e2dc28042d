// tanh: the hyperbolic tangent, any shape.
#include "layers/layer.h"

namespace dpt::layers {
namespace {

struct Tanh {
  static constexpr Usage kUsage{"torch.nn.Tanh", "- tanh"};
  static KeyTable<Tanh> keys() { return {}; }
  ValueId build(GraphBuilder& g, ValueId x) const { return g.apply("tanh", {x}); }
  std::string torch(const Shape&) const { return "nn.Tanh()"; }
};

}  // namespace

LayerType tanh() { return layer_type<Tanh>("tanh", "Hyperbolic tangent."); }

}  // namespace dpt::layers
