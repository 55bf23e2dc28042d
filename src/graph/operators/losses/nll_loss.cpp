// nll_loss: -w[y] * output[y] for a class target y, 0 if y is ignored. The output holds
// log-probabilities along dimension `dim`. With gamma, the term has a factor (1 - exp(output[y]))^
// gamma: focal_loss.
#include "graph/formulas/loss.h"
#include "graph/operators/losses/class_targets.h"

namespace dpt::operators {
namespace {

void check(std::span<const TensorDesc> in, const NllLoss& attrs) {
  const int dim = attrs.dim;
  need_classes("nll_loss", in[0], dim);
  const Shape positions = positions_of(in[0].shape, dim);
  if (in[1] != TensorDesc{DType::i32, positions})
    fail(Fault::spec, "nll_loss: output {} needs classes i32{} as targets, not {}", str(in[0]),
         positions.str(), str(in[1]));
  need_divisor(in[0], in[2]);
  need_class_weight("nll_loss", in, dim);
}

// Calls f(offset of the target class's element, its weight).
template <class F>
void for_each_target(const KernelArgs& args, const NllLoss& s, F f) {
  const Weights w(args, 3);
  for_each_position(args.in[0], args.in[1], s.dim, s.ignore_index, [&](const Position& p) {
    const auto y = static_cast<size_t>(p.target);
    f(p.first + y * p.step, w[y]);
  });
}

void forward(const KernelArgs& args, const NllLoss& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>();
    const double gamma = attrs.gamma;
    double sum = 0;
    for_each_target(args, attrs, [&](size_t at, double w) {
      sum += w * formula::focal(static_cast<double>(x[at]), gamma);
    });
    args.out[0].as<double>()[0] = sum / static_cast<double>(args.in[2].as<const T>()[0]);
  });
}

void backward(const KernelArgs& args, const NllLoss& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>();
    const auto dx = args.out[0].as<T>();
    const double divisor = static_cast<double>(args.in[2].as<const T>()[0]);
    const double gamma = attrs.gamma;
    for (T& d : dx) d = 0;
    for_each_target(args, attrs, [&](size_t at, double w) {
      const double slope =
          gamma == 0 ? -1 : formula::focal_slope(static_cast<double>(x[at]), gamma);
      dx[at] = static_cast<T>(w * slope / divisor);
    });
  });
}

std::string variant(const NllLoss& attrs) { return attrs.gamma != 0 ? "focal" : ""; }

}  // namespace

Operators nll_loss() {
  Operators out = loss_types<check, forward, backward>("nll_loss", "nll_loss_gradient");
  for (OperatorType& type : out) type.variant = typed<variant>;
  return out;
}

}  // namespace dpt::operators
