// silu: x * sigmoid(x), any shape.
#include "layers/layer.h"

namespace dpt::layers {
namespace {

struct Silu {
  static constexpr Usage kUsage{"torch.nn.SiLU", "- silu"};
  static KeyTable<Silu> keys() { return {}; }
  ValueId build(GraphBuilder& g, ValueId x) const { return g.apply("silu", {x}); }
  std::string torch(const Shape&) const { return "nn.SiLU()"; }
};

}  // namespace

LayerType silu() { return layer_type<Silu>("silu", "Sigmoid linear unit: x * sigmoid(x)."); }

}  // namespace dpt::layers
