// relu: max(0, x), any shape.
#include "layers/layer.h"

namespace dpt::layers {
namespace {

struct Relu {
  static constexpr Usage kUsage{"torch.nn.ReLU", "- relu"};
  static KeyTable<Relu> keys() { return {}; }
  ValueId build(GraphBuilder& g, ValueId x) const { return g.apply("relu", {x}); }
  std::string torch(const Shape&) const { return "nn.ReLU()"; }
};

}  // namespace

LayerType relu() { return layer_type<Relu>("relu", "Rectified linear unit: max(0, x)."); }

}  // namespace dpt::layers
