// The operators of the table of pointwise losses (graph/formulas/losses.h): the sum of terms, and
// the slope of each term, over the divisor. After the divisor follow the weights that are given:
// those of elements, and those of positive targets, both broadcast over the leading dimensions.
#include "graph/formulas/losses.h"
#include "graph/operators/losses/loss_support.h"

namespace dpt::operators {
namespace {

template <class F>
class PointwiseLoss {
 public:
  static Operators types() {
    Operators out = loss_types<check, forward, backward>(kRow.name, kRow.gradient);
    out[0].autocast_refuses = kRow.autocast_refuses;
    return out;
  }

 private:
  static constexpr const formula::PointwiseLossRow& kRow = F::kRow;

  // Targets must have the output's shape and dtype; weights must fit the output's last dimensions.
  static void check(std::span<const TensorDesc> in) {
    const TensorDesc &x = in[0], &t = in[1];
    need_real(kRow.name, x);
    if (t != x)
      fail(Fault::spec, "{}: output {} needs targets {}, not {}{}", kRow.name, str(x), str(x),
           str(t),
           t.dtype == DType::i32
               ? "; class numbers become such targets by target_transforms: [one_hot]"
               : "");
    need_divisor(x, in[2]);
    for (const TensorDesc& w : in.subspan(3)) {
      const int from = x.shape.rank() - w.shape.rank();
      if (w.shape != Shape{1} && (from < 1 || x.shape.tail(from) != w.shape))
        fail(Fault::spec, "{}: weights {} do not fit the last extents of output {}", kRow.name,
             str(w), str(x));
    }
  }

  // Calls f(i, divisor, x, t, weight, positive) for each element.
  template <class T, class Visitor>
  static void for_each_element(const KernelArgs& args, const F& loss, Visitor f) {
    const auto x = args.in[0].as<const T>(), t = args.in[1].as<const T>();
    const double divisor = static_cast<double>(args.in[2].as<const T>()[0]);
    const formula::LossWeights weights = weights_of(loss, args.in.size());
    const Weights w(args, weights.element), p(args, weights.positive);
    for (size_t i = 0; i < x.size(); ++i)
      f(i, divisor, static_cast<double>(x[i]), static_cast<double>(t[i]), w[i], p[i]);
  }
  static void forward(const KernelArgs& args, const F& loss) {
    double sum = 0, divisor = 1;
    with_type_of(args.in[0], [&]<class T>(T) {
      for_each_element<T>(args, loss,
                          [&](size_t, double over, double x, double t, double w, double p) {
                            divisor = over;
                            sum += formula::loss_term(loss, x, t, w, p);
                          });
    });
    args.out[0].as<double>()[0] = sum / divisor;
  }
  static void backward(const KernelArgs& args, const F& loss) {
    with_type_of(args.in[0], [&]<class T>(T) {
      const auto dx = args.out[0].as<T>();
      for_each_element<T>(args, loss,
                          [&](size_t i, double divisor, double x, double t, double w, double p) {
                            dx[i] = static_cast<T>(formula::loss_slope(loss, x, t, w, p) / divisor);
                          });
    });
  }
};

template <class... F>
Operators types_of(formula::FormulaList<F...>) {
  Operators out;
  (add(out, PointwiseLoss<F>::types()), ...);
  return out;
}

}  // namespace

Operators pointwise_losses() { return types_of(formula::PointwiseLosses{}); }

}  // namespace dpt::operators
