// sigmoid: 1 / (1 + exp(-x)), any shape.
#include "layers/layer.h"

namespace dpt::layers {
namespace {

struct Sigmoid {
  static constexpr Usage kUsage{"torch.nn.Sigmoid", "- sigmoid"};
  static KeyTable<Sigmoid> keys() { return {}; }
  ValueId build(GraphBuilder& g, ValueId x) const { return g.apply("sigmoid", {x}); }
  std::string torch(const Shape&) const { return "nn.Sigmoid()"; }
};

}  // namespace

LayerType sigmoid() { return layer_type<Sigmoid>("sigmoid", "1 / (1 + exp(-x))."); }

}  // namespace dpt::layers
