// relu6: min(max(0, x), 6), any shape.
#include "layers/layer.h"

namespace dpt::layers {
namespace {

struct Relu6 {
  static constexpr Usage kUsage{"torch.nn.ReLU6", "- relu6"};
  static KeyTable<Relu6> keys() { return {}; }
  ValueId build(GraphBuilder& g, ValueId x) const { return g.apply("relu6", {x}); }
  std::string torch(const Shape&) const { return "nn.ReLU6()"; }
};

}  // namespace

LayerType relu6() { return layer_type<Relu6>("relu6", "min(max(0, x), 6)."); }

}  // namespace dpt::layers
