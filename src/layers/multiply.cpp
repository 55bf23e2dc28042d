// multiply: the element-wise product of several values of one shape, from left to right. It takes
// them from `from`.
#include "base/fail.h"
#include "layers/layer.h"

namespace dpt::layers {
namespace {

struct Multiply {
  static constexpr Usage kUsage{"torch.mul",
                                "- multiply:\n"
                                "  from: [left, right]"};
  static KeyTable<Multiply> keys() { return {}; }

  ValueId build(GraphBuilder& g, std::span<const ValueId> x) const {
    if (x.size() < 2) fail(Fault::spec, "multiply takes several values: write from: [a, b]");
    ValueId product = x[0];
    for (ValueId v : x.subspan(1)) {
      if (g.shape(v) != g.shape(product))
        fail(Fault::spec, "multiply: {} and {} are not the same shape", g.shape(product).str(),
             g.shape(v).str());
      product = g.apply("multiply", {product, v});
    }
    return product;
  }
};

}  // namespace

LayerType multiply() {
  return {
      registry_entry<Multiply>(
          "multiply", "Multiplies the outputs of several entries, which must have the same shape."),
      [](const std::any& settings, GraphBuilder& g, std::span<const ValueId> x) {
        return std::any_cast<const Multiply&>(settings).build(g, x);
      },
      true, [](const std::any&, const Shape&) -> std::string { return "math.prod(x)"; }};
}

}  // namespace dpt::layers
