// All gradients of batch_norm_training (batch_norm_training.cpp) as one operator, for GPUs. Made by
// graph/passes/fuse.cpp from the gradients of batch_norm, batch_norm_relu and batch_norm_add_relu;
// it sums over a single shard only. relu passes gradients where y > 0.
//   batch_norm_backward(dy, x, moments, w) -> dx, dw[C], db[C]
//   batch_norm_relu_backward(dy, x, moments, w, y) -> dx, dw, db
//   batch_norm_add_relu_backward(dy, x, moments, w, y, [dy2]) -> dx, dw, db, dr; the gradient of y
//     is dy, or dy + dy2
#include "graph/operators/norms/batch_norm.h"

namespace dpt::operators {
namespace {

constexpr char kPlain[] = "batch_norm_backward", kRelu[] = "batch_norm_relu_backward",
               kAddRelu[] = "batch_norm_add_relu_backward";

std::vector<TensorDesc> infer_of(std::string_view op, std::span<const TensorDesc> in) {
  need_gradient(op, in);
  need_shape(op, in[3], {channels_of(in[1])});
  for (const TensorDesc& image : in.subspan(4)) need_shape(op, image, in[1].shape);
  std::vector<TensorDesc> out = {in[1], in[3], in[3]};
  if (op == kAddRelu) out.push_back(in[1]);
  return out;
}

// Runs the operators that it replaces. If dr is not a result, it is computed in the memory of dx.
void backward_of(std::string_view name, const KernelArgs& args, const std::any& attrs) {
  std::vector<double> numbers(static_cast<size_t>(2 * channels_of(args.in[1].desc) + 1));
  const TensorView sums{f64({std::ssize(numbers)}), reinterpret_cast<std::byte*>(numbers.data())};
  const TensorView x = args.in[1], moments = args.in[2], w = args.in[3];
  const auto run = [&](std::string_view step, const std::vector<TensorView>& in,
                       const std::vector<TensorView>& out) {
    op(step).reference({in, out, args.context}, attrs);
  };
  TensorView dr = args.in[0];
  if (name == kPlain) {
    run("batch_norm_sums", {dr, x, moments}, {sums});
  } else {
    std::vector<TensorView> in = {args.in[4], x, moments, args.in[0]};
    if (args.in.size() > 5) in.push_back(args.in[5]);
    dr = name == kAddRelu ? args.out[3] : args.out[0];
    run("batch_norm_add_relu_gradient", in, {dr, sums});
  }
  run("batch_norm_weight_gradient", {sums, w}, {args.out[1], args.out[2]});
  run("batch_norm_input_gradient", {dr, x, moments, sums, w}, {args.out[0]});
}

std::vector<Sample> samples_of(std::string_view name) {
  std::vector<Sample> out;
  for (const Shape& s : {Shape{3, 2}, Shape{2, 17, 5}, Shape{3, 16, 2, 3}})
    for (size_t gradients = 1; gradients <= (name == kAddRelu ? 2U : 1U); ++gradients) {
      const TensorDesc w = f32({s[1]});
      Sample sample{{name, {f32(s), f32(s), f64({2 * s[1]}), w}, {f32(s), w, w}, BatchNorm{}},
                    {{}, {}, kPositive}};
      KernelQuery& q = sample.query;
      if (name != kPlain) q.in.insert(q.in.end(), gradients, f32(s));
      if (name == kAddRelu) q.out.push_back(f32(s));
      out.push_back(sample);
    }
  return out;
}

template <const char* kName>
OperatorType backward() {
  return on_images(
      {kName, Precision::statistics,
       [](std::span<const TensorDesc> in, const std::any&) { return infer_of(kName, in); }, nullptr,
       [](const KernelArgs& args, const std::any& attrs) { backward_of(kName, args, attrs); },
       [] { return samples_of(kName); }, elements_of_first_input});
}

}  // namespace

OperatorType batch_norm_backward() { return backward<kPlain>(); }
OperatorType batch_norm_relu_backward() { return backward<kRelu>(); }
OperatorType batch_norm_add_relu_backward() { return backward<kAddRelu>(); }

}  // namespace dpt::operators
