// The layers of the table of activations (graph/formulas/activations.h): any shape.
#include "graph/formulas/activations.h"
#include "layers/formula_keys.h"
#include "layers/layer.h"

namespace dpt::layers {
namespace {

// The parameters of the activation are the keys of the layer.
template <class F>
struct PointwiseLayer : F {
  static constexpr Usage kUsage{F::kRow.torch, F::kRow.example};

  static KeyTable<PointwiseLayer> keys() {
    KeyTable<PointwiseLayer> out;
    add_parameters<F>(out);
    return out;
  }
  static void check(const PointwiseLayer& layer, const Owner& owner, Diagnostics& d) {
    if constexpr (requires { layer.refuses(); })
      if (const char* wrong = layer.refuses()) d.error(owner.where, wrong);
  }
  ValueId build(GraphBuilder& g, ValueId x) const {
    return g.apply(F::kRow.name, {x}, static_cast<const F&>(*this));
  }
};

template <class... F>
std::vector<LayerType> types_of(formula::FormulaList<F...>) {
  std::vector<LayerType> out;
  const auto add = [&]<class A>(A) {
    if constexpr (A::kRow.torch != nullptr)
      out.push_back(layer_type<PointwiseLayer<A>>(A::kRow.name, A::kRow.summary));
  };
  (add(F{}), ...);
  return out;
}

}  // namespace

std::vector<LayerType> activations() { return types_of(formula::Activations{}); }

}  // namespace dpt::layers
