// selu: scale * (max(0, x) + min(0, alpha * (exp(x) - 1))), any shape (Klambauer et al. 2017).
#include "layers/layer.h"

namespace dpt::layers {
namespace {

struct Selu {
  static constexpr Usage kUsage{"torch.nn.SELU", "- selu"};
  static KeyTable<Selu> keys() { return {}; }
  ValueId build(GraphBuilder& g, ValueId x) const { return g.apply("selu", {x}); }
  std::string torch(const Shape&) const { return "nn.SELU()"; }
};

}  // namespace

LayerType selu() { return layer_type<Selu>("selu", "Scaled exponential linear unit."); }

}  // namespace dpt::layers
