// hardswish: x * min(max(x + 3, 0), 6) / 6; any shape (Howard et al., 2019).
#include "layers/layer.h"

namespace dpt::layers {
namespace {

struct Hardswish {
  static constexpr Usage kUsage{"torch.nn.Hardswish", "- hardswish"};
  static KeyTable<Hardswish> keys() { return {}; }
  ValueId build(GraphBuilder& g, ValueId x) const { return g.apply("hardswish", {x}); }
  std::string torch(const Shape&) const { return "nn.Hardswish()"; }
};

}  // namespace

LayerType hardswish() {
  return layer_type<Hardswish>("hardswish", "x * min(max(x + 3, 0), 6) / 6.");
}

}  // namespace dpt::layers
