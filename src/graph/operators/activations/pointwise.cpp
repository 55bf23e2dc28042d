// The operators of the table of activations (graph/formulas/activations.h): y = f(x), and dx = dy *
// f'(x).
#include "graph/formulas/activations.h"
#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

template <class F>
class Pointwise {
 public:
  static OperatorType operator_type() {
    OperatorType out = {
        .name = kRow.name,
        .precision = kRow.full_on_cuda ? Precision::full_on_cuda : Precision::follow,
        .infer = infer,
        .gradient = gradient,
        .reference = forward,
        .samples = [] {
          return samples(kRow.name, 1, {kRow.low, kRow.high});
        }};
    out.layouts = Layouts::any;
    out.selects = kRow.selects;
    return out;
  }
  static OperatorType gradient_type() {
    OperatorType out = {.name = kRow.gradient,
                        .precision = kRow.full_on_cuda ? Precision::full : Precision::follow,
                        .infer = infer,
                        .reference = backward,
                        .samples = [] {
                          return samples(kRow.gradient, 2,
                                         kRow.from_result
                                             ? Sample::Range{kRow.result_low, kRow.result_high}
                                             : Sample::Range{kRow.low, kRow.high});
                        }};
    out.layouts = Layouts::any;
    out.selects = kRow.gradient_selects;
    out.backward = true;
    return out;
  }

 private:
  static constexpr const formula::ActivationRow& kRow = F::kRow;

  // The parameters in the order of kParameters.
  struct Values {
    double p[2] = {};
    explicit Values(const std::any& attrs) {
      formula::each_parameter<F>([&, to = p](const auto& parameter) mutable {
        *to++ = settings<F>(attrs).*parameter.number;
      });
    }
  };

  static std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any&) {
    return same_as_first(kRow.name, in);
  }
  static std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n,
                                       std::span<const ValueId> dy) {
    return {g.apply(kRow.gradient, {kRow.from_result ? n.out[0] : n.in[0], dy[0]}, n.attrs)};
  }
  static void forward(const KernelArgs& a, const std::any& attrs) {
    const Values values(attrs);
    map(a, [&](double x) { return formula::value_of<F>(x, values.p); });
  }
  static void backward(const KernelArgs& a, const std::any& attrs) {
    const Values values(attrs);
    map(a, [&](double x, double dy) { return formula::gradient_of<F>(x, dy, values.p); });
  }

  static std::vector<Sample> samples(std::string_view op, size_t inputs, Sample::Range range) {
    const std::vector<double> kinks(std::begin(kRow.kinks), std::end(kRow.kinks));
    if constexpr (formula::kParametersOf<F> == 0) {
      return elementwise_samples(op, inputs, {}, range, kinks);
    } else {
      std::vector<Sample> out;
      for (const auto& values : F::kSamples)
        for (Sample& s :
             elementwise_samples(op, inputs, formula::with_parameters<F>(values), range, kinks))
          out.push_back(std::move(s));
      return out;
    }
  }
};

template <class... F>
std::vector<OperatorType> types_of(formula::FormulaList<F...>) {
  std::vector<OperatorType> out;
  (
      [&] {
        out.push_back(Pointwise<F>::operator_type());
        out.push_back(Pointwise<F>::gradient_type());
      }(),
      ...);
  return out;
}

}  // namespace

std::vector<OperatorType> activations() { return types_of(formula::Activations{}); }

}  // namespace dpt::operators
