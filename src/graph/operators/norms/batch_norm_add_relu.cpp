// Batch norm, addition and relu in one pass: the end of a residual block. Made by
// graph/passes/fuse.cpp.
//   batch_norm_add_relu(x, r, moments, [w], [b]) -> y = relu(batch_norm(x, ...) + r)
//   batch_norm_add_relu_gradient(y, x, moments, dy, [dy2]) -> dr, sums
//     dr: relu's gradient of dy, or of dy + dy2; it is also the dy of batch_norm
//     sums: batch_norm_sums of dr
#include "base/half.h"
#include "graph/formulas/activation.h"
#include "graph/operators/norms/batch_norm.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any&) {
  constexpr std::string_view kOp = "batch_norm_add_relu";
  need_normalisation(kOp, in, 2);
  if (in[1] != in[0])
    fail(Fault::spec, "{}: {} and {} do not fit together", kOp, str(in[0]), str(in[1]));
  return {in[0]};
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  const std::span affine = std::span(n.in).subspan(3);
  const ValueId x = n.in[0], moments = n.in[2], y = n.out[0];
  ValueId dr = kNoValue, sums = kNoValue;
  if (settings<BatchNorm>(n.attrs).batch || !affine.empty()) {
    dr = g.apply("batch_norm_add_relu_gradient", {y, x, moments, dy[0]}, n.attrs);
    sums = g.graph().nodes.back().out[1];
  } else {
    dr = g.apply("relu_gradient", {y, dy[0]});
  }
  const BatchNormGradients d = gradients_from_sums(g, "batch_norm_input_gradient", {dr, x, moments},
                                                   sums, affine, 1, n.attrs);
  std::vector<ValueId> out{d.x, dr, kNoValue, d.w, d.b};
  out.resize(n.in.size());
  return out;
}

// Rounds as storing a half between the operators would.
template <class T>
auto rounding(const std::any& attrs) {
  return [half = settings<BatchNorm>(attrs).between](T x) {
    return half == DType::f32 ? x : static_cast<T>(rounded_to(half, static_cast<float>(x)));
  };
}

// The addition is in the type of the inputs, as in `add`.
void forward(const KernelArgs& args, const std::any& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>(), r = args.in[1].as<const T>();
    const auto y = args.out[0].as<T>();
    const Normalisation<T> n(args, 2, 3);
    const auto round = rounding<T>(attrs);
    each_element(args.in[0], [&](size_t i, size_t c) {
      y[i] = formula::relu(round(round(n(x[i], c)) + r[i]));
    });
  });
}

std::vector<TensorDesc> infer_gradient(std::span<const TensorDesc> in, const std::any&) {
  constexpr std::string_view kOp = "batch_norm_add_relu_gradient";
  need_gradient(kOp, in);
  for (const TensorDesc& dy : in.subspan(3)) need_shape(kOp, dy, in[1].shape);
  return {in[0], f64({in[2].shape[0] + 1})};
}

void gradients(const KernelArgs& args, const std::any& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto y = args.in[0].as<const T>(), dy = args.in[3].as<const T>(),
               dy2 = optional_input<T>(args, 4);
    const auto dr = args.out[0].as<T>();
    const auto round = rounding<T>(attrs);
    for (size_t i = 0; i < dr.size(); ++i)
      dr[i] = round(formula::relu_gradient(y[i], dy2.empty() ? dy[i] : dy[i] + dy2[i]));
    sum_gradient(args.in[1], Normalisation<T>(args, 2, args.in.size()), args.out[1].as<double>(),
                 [&](size_t i, size_t) { return dr[i]; });
  });
}

// With constant moments, as in batch_norm.cpp.
std::vector<Sample> samples() {
  return affine_samples("batch_norm_add_relu", 2, BatchNorm{.batch = false}, f32);
}

std::vector<Sample> gradient_samples() {
  std::vector<Sample> out;
  for (const Shape& s : {Shape{3, 2}, Shape{2, 17, 5}, Shape{3, 16, 2, 3}}) {
    std::vector<TensorDesc> in = {f32(s), f32(s), f64({2 * s[1]})};
    for (int gradients = 1; gradients <= 2; ++gradients) {
      in.push_back(f32(s));
      out.push_back({{"batch_norm_add_relu_gradient", in, {f32(s), f64({2 * s[1] + 1})}, {}},
                     {{}, {}, kPositive}});
    }
  }
  return out;
}

}  // namespace

OperatorType batch_norm_add_relu() {
  return on_images({.name = "batch_norm_add_relu",
                    .precision = Precision::follow,
                    .infer = infer,
                    .gradient = gradient,
                    .reference = forward,
                    .samples = samples});
}

OperatorType batch_norm_add_relu_gradient() {
  return on_images({.name = "batch_norm_add_relu_gradient",
                    .precision = Precision::full,
                    .infer = infer_gradient,
                    .reference = gradients,
                    .samples = gradient_samples,
                    .flops = elements_of_first_input});
}

}  // namespace dpt::operators
