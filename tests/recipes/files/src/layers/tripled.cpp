// tripled: 3 x, any shape.
#include "formats/python_call.h"
#include "layers/layer.h"

namespace dpt::layers {
namespace {

struct Tripled {
  static constexpr Usage kUsage{"", "- tripled"};
  static KeyTable<Tripled> keys() { return {}; }
  ValueId build(GraphBuilder& g, ValueId x) const { return g.apply("triple", {x}); }
  std::string torch(const Shape&) const { return "Tripled()"; }
};

}  // namespace

LayerType tripled() { return layer_type<Tripled>("tripled", "Three times x."); }

}  // namespace dpt::layers
