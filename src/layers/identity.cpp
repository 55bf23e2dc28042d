// identity: returns its input. Used to name a point of the model, or as a residual's shortcut.
#include "layers/layer.h"

namespace dpt::layers {
namespace {

struct Identity {
  static constexpr Usage kUsage{"torch.nn.Identity", "- identity"};
  static KeyTable<Identity> keys() { return {}; }
  ValueId build(GraphBuilder&, ValueId x) const { return x; }
};

}  // namespace

LayerType identity() { return layer_type<Identity>("identity", "Returns its input unchanged."); }

}  // namespace dpt::layers
