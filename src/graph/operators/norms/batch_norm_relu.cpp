// Batch norm and relu in one pass. Made by graph/passes/fuse.cpp. The gradients recompute where y >
// 0, so neither y nor the value between the two is kept for them.
//   batch_norm_relu(x, moments, [w], [b]) -> y = relu(batch_norm(x, ...))
//   batch_norm_relu_sums(dy, x, moments, [w], [b]) -> sums: batch_norm_sums of relu's dx
//   batch_norm_relu_input_gradient(dy, x, moments, [sums], [w], [b]) -> dx
#include "graph/formulas/activation.h"
#include "graph/operators/norms/batch_norm.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any&) {
  need_normalisation("batch_norm_relu", in, 1);
  return {in[0]};
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  const std::span affine = std::span(n.in).subspan(2);
  const std::vector<ValueId> in = {dy[0], n.in[0], n.in[1]};
  ValueId sums = kNoValue;
  if (settings<BatchNorm>(n.attrs).batch || !affine.empty()) {
    std::vector<ValueId> all = in;
    all.insert(all.end(), affine.begin(), affine.end());
    sums = g.apply("batch_norm_relu_sums", all);
  }
  const BatchNormGradients d =
      gradients_from_sums(g, "batch_norm_relu_input_gradient", in, sums, affine, 2, n.attrs);
  std::vector<ValueId> out{d.x, kNoValue, d.w, d.b};
  out.resize(n.in.size());
  return out;
}

void forward(const KernelArgs& args, const std::any&) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>();
    const auto y = args.out[0].as<T>();
    const Normalisation<T> n(args, 1, 2);
    each_element(args.in[0], [&](size_t i, size_t c) { y[i] = formula::relu(n(x[i], c)); });
  });
}

std::vector<TensorDesc> infer_sums(std::span<const TensorDesc> in, const std::any&) {
  need_gradient("batch_norm_relu_sums", in);
  for (const TensorDesc& p : in.subspan(3))
    need_shape("batch_norm_relu_sums", p, {channels_of(in[1])});
  return {f64({in[2].shape[0] + 1})};
}

// relu's dx, which is batch_norm's dy, as a function of (offset, channel).
template <class T>
auto before_relu(const KernelArgs& args, const Normalisation<T>& n) {
  return [dy = args.in[0].as<const T>(), x = args.in[1].as<const T>(), n](size_t i, size_t c) {
    return formula::relu_gradient(n(x[i], c), dy[i]);
  };
}

void sums(const KernelArgs& args, const std::any&) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const Normalisation<T> n(args, 2, 3);
    sum_gradient(args.in[1], n, args.out[0].as<double>(), before_relu(args, n));
  });
}

std::vector<TensorDesc> infer_input_gradient(std::span<const TensorDesc> in,
                                             const std::any& attrs) {
  need_input_gradient("batch_norm_relu_input_gradient", in, attrs);
  return {in[0]};
}

void input_gradient(const KernelArgs& args, const std::any& attrs) {
  const bool batch = settings<BatchNorm>(attrs).batch;
  with_type_of(args.in[0], [&]<class T>(T) {
    const Normalisation<T> n(args, 2, batch ? 4 : 3);
    gradient_of_input(args.in[1], n,
                      batch ? args.in[3].as<const double>() : std::span<const double>{},
                      args.out[0].as<T>(), before_relu(args, n));
  });
}

// With constant moments, as in batch_norm.cpp.
std::vector<Sample> samples() {
  return affine_samples("batch_norm_relu", 1, BatchNorm{.batch = false}, f32);
}

std::vector<Sample> sums_samples() {
  return affine_samples("batch_norm_relu_sums", 2, {},
                        [](const Shape& s) { return f64({2 * s[1] + 1}); });
}

std::vector<Sample> input_gradient_samples() {
  return input_gradient_samples_of("batch_norm_relu_input_gradient", 2);
}

}  // namespace

OperatorType batch_norm_relu() {
  return on_images({.name = "batch_norm_relu",
                    .precision = Precision::follow,
                    .infer = infer,
                    .gradient = gradient,
                    .reference = forward,
                    .samples = samples});
}

OperatorType batch_norm_relu_sums() {
  return on_images({.name = "batch_norm_relu_sums",
                    .precision = Precision::full,
                    .infer = infer_sums,
                    .reference = sums,
                    .samples = sums_samples,
                    .flops = elements_of_first_input});
}

OperatorType batch_norm_relu_input_gradient() {
  return on_images({.name = "batch_norm_relu_input_gradient",
                    .precision = Precision::full,
                    .infer = infer_input_gradient,
                    .reference = input_gradient,
                    .samples = input_gradient_samples});
}

}  // namespace dpt::operators
