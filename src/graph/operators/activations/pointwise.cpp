// The operators of the table of activations (graph/formulas/activations.h): y = f(x), and dx = dy *
// f'(x).
#include "graph/formulas/activations.h"
#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

template <class F>
class Pointwise {
 public:
  static Operators types() {
    return {{.name = kRow.name,
             .precision = kRow.full_on_cuda ? Precision::full_on_cuda : Precision::follow,
             .infer = typed<infer>,
             .gradient = gradient,
             .reference = typed<forward>,
             .layouts = Layouts::any,
             .torch_order = kRow.row_major ? TorchOrder::row_major : TorchOrder::by_layouts,
             .traits = kRow.selects ? Traits(Trait::selects) : Traits()},
            {.name = kRow.gradient,
             .precision = kRow.full_on_cuda ? Precision::full : Precision::follow,
             .infer = typed<infer>,
             .reference = typed<backward>,
             .layouts = Layouts::any,
             .traits = kRow.gradient_selects ? Trait::backward | Trait::selects
                                             : Traits(Trait::backward)}};
  }

 private:
  static constexpr const formula::ActivationRow& kRow = F::kRow;

  // The parameters in the order of kParameters.
  struct Values {
    double p[2] = {};
    explicit Values(const F& attrs) {
      formula::each_parameter<F>(
          [&, to = p](const auto& parameter) mutable { *to++ = attrs.*parameter.number; });
    }
  };

  static std::vector<TensorDesc> infer(std::span<const TensorDesc> in) {
    return same_as_first(kRow.name, in);
  }
  static std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n,
                                       std::span<const ValueId> dy) {
    return {g.apply(kRow.gradient, {kRow.from_result ? n.out[0] : n.in[0], dy[0]}, n.attrs)};
  }
  static void forward(const KernelArgs& a, const F& attrs) {
    const Values values(attrs);
    map(a, [&](double x) { return formula::value_of<F>(x, values.p); });
  }
  static void backward(const KernelArgs& a, const F& attrs) {
    const Values values(attrs);
    map(a, [&](double x, double dy) { return formula::gradient_of<F>(x, dy, values.p); });
  }
};

template <class... F>
Operators types_of(formula::FormulaList<F...>) {
  Operators out;
  (add(out, Pointwise<F>::types()), ...);
  return out;
}

}  // namespace

Operators pointwise() { return types_of(formula::Activations{}); }

}  // namespace dpt::operators
