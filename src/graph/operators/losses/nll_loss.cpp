// nll_loss: -w[y] * output[y] for a class target y, 0 if y is ignored. The output holds
// log-probabilities along dimension `dim`. With gamma, the term has a factor (1 - exp(output[y]))^
// gamma: focal_loss.
#include "graph/formulas/loss.h"
#include "graph/operators/losses/class_targets.h"

namespace dpt::operators {
namespace {

void check(std::span<const TensorDesc> in, const std::any& attrs) {
  const int dim = settings<NllLoss>(attrs).dim;
  need_classes("nll_loss", in[0], dim);
  const Shape positions = positions_of(in[0].shape, dim);
  if (in[1] != TensorDesc{DType::i32, positions})
    fail(Fault::spec, "nll_loss: output {} needs classes i32{} as targets, not {}", str(in[0]),
         positions.str(), str(in[1]));
  need_divisor(in[0], in[2]);
  need_class_weight("nll_loss", in, dim);
}

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any& attrs) {
  check(in, attrs);
  return one_double();
}

std::vector<TensorDesc> infer_gradient(std::span<const TensorDesc> in, const std::any& attrs) {
  check(in, attrs);
  return {in[0]};
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  return loss_gradient(g, n, "nll_loss_gradient", dy);
}

// Calls f(offset of the target class's element, its weight).
template <class F>
void for_each_target(const KernelArgs& args, const std::any& attrs, F f) {
  const TensorView* w = input_or_none(args, 3);
  const auto& s = settings<NllLoss>(attrs);
  for_each_position(args.in[0], args.in[1], s.dim, s.ignore_index, [&](const Position& p) {
    const auto y = static_cast<size_t>(p.target);
    f(p.first + y * p.step, weight_at(w, y));
  });
}

void forward(const KernelArgs& args, const std::any& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>();
    const double gamma = settings<NllLoss>(attrs).gamma;
    double sum = 0;
    for_each_target(args, attrs, [&](size_t at, double w) {
      sum += w * formula::focal(static_cast<double>(x[at]), gamma);
    });
    args.out[0].as<double>()[0] = sum / static_cast<double>(args.in[2].as<const T>()[0]);
  });
}

void backward(const KernelArgs& args, const std::any& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>();
    const auto dx = args.out[0].as<T>();
    const double divisor = static_cast<double>(args.in[2].as<const T>()[0]);
    const double gamma = settings<NllLoss>(attrs).gamma;
    for (T& d : dx) d = 0;
    for_each_target(args, attrs, [&](size_t at, double w) {
      const double slope =
          gamma == 0 ? -1 : formula::focal_slope(static_cast<double>(x[at]), gamma);
      dx[at] = static_cast<T>(w * slope / divisor);
    });
  });
}

std::string variant(const std::any& attrs) {
  return settings<NllLoss>(attrs).gamma != 0 ? "focal" : "";
}

std::vector<Sample> samples_of(std::string_view op, bool gradient) {
  std::vector<Sample> out;
  const auto add = [&](Shape x, bool weight, NllLoss attrs) {
    std::vector<TensorDesc> in = {f32(x), i32(positions_of(x, attrs.dim)), f32({1})};
    std::vector<Sample::Range> ranges = {{-5, 0}, {0, static_cast<double>(x[attrs.dim])}, {1, 8}};
    if (weight) {
      in.push_back(f32({x[attrs.dim]}));
      ranges.push_back({0, 2});
    }
    const TensorDesc result = gradient ? f32(x) : TensorDesc{DType::f64, {1}};
    out.push_back({{op, in, {result}, attrs}, ranges});
  };
  add({5, 3}, false, {});
  add({7, 10}, true, {.ignore_index = 4});
  add({2, 3, 4}, true, {});
  add({2, 3, 4}, true, {.ignore_index = 2, .dim = 2});
  add({7, 5}, false, {.gamma = 2});
  add({2, 3, 4}, true, {.ignore_index = 1, .gamma = 0.5});
  return out;
}

}  // namespace

OperatorType nll_loss() {
  return {.name = "nll_loss",
          .precision = Precision::full,
          .infer = infer,
          .gradient = gradient,
          .reference = forward,
          .samples = [] { return samples_of("nll_loss", false); },
          .flops = elements_of_first_input,
          .variant = variant};
}

OperatorType nll_loss_gradient() {
  return {.name = "nll_loss_gradient",
          .precision = Precision::full,
          .infer = infer_gradient,
          .reference = backward,
          .samples = [] { return samples_of("nll_loss_gradient", true); },
          .variant = variant,
          .backward = true};
}

}  // namespace dpt::operators
