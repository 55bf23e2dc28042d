// The gradients of batch norm (batch_norm.cpp). relu passes a gradient where y > 0, which is
// recomputed from x, so that y is not kept for it, unless an addition makes y.
//   batch_norm_sums(dy, x, moments) -> sums[2 C + 1]: of dy and of dy * (x - mean) * rstd, elements
//   batch_norm_sums{relu}(dy, x, moments, [w], [b]) -> the same for relu's gradient of dy
//   batch_norm_sums{add,relu}(dy, x, moments, y, [dy2]) -> dr, sums
//     dr: relu's gradient of dy, or of dy + dy2; it is also the dy of batch_norm
//     sums: batch_norm_sums of dr
//   batch_norm_input_gradient(dy, x, moments, [sums], [w]) -> dx
//   batch_norm_input_gradient{relu}(dy, x, moments, [sums], [w], [b]) -> dx
//   batch_norm_weight_gradient(sums, w) -> dw[C], db[C]
//   batch_norm_backward(dy, x, moments, w) -> dx, dw[C], db[C]: all gradients of
//     batch_norm{training}, for GPUs; it sums over a single shard only
//   batch_norm_backward{relu}(dy, x, moments, w, y) -> dx, dw, db
//   batch_norm_backward{add,relu}(dy, x, moments, w, y, [dy2]) -> dx, dw, db, dr; the gradient of y
//     is dy, or dy + dy2
#include "graph/formulas/activation.h"
#include "graph/operators/norms/batch_norm.h"

namespace dpt::operators {
namespace {

// Checks dy, x and moments.
void need_gradient(std::string_view op, std::span<const TensorDesc> in) {
  need_channels(op, in[1]);
  need_shape(op, in[0], in[1].shape);
  need_shape(op, in[2], {2 * channels_of(in[1])});
}

// sums[2 C + 1] of dy and of dy * normalized x for each channel c; dy(i, c) is the gradient at
// offset i.
template <class T, class Dy>
void sum_gradient(const TensorView& x, const Normalisation<T>& n, std::span<double> sums, Dy dy) {
  const auto values = x.as<const T>();
  std::ranges::fill(sums, 0.0);
  each_element(x, [&](size_t i, size_t c) {
    const auto d = static_cast<double>(dy(i, c));
    sums[c] += d;
    sums[n.channels() + c] += d * n.normalised(values[i], c);
  });
  sums.back() = elements_of_channel(x);
}

// The gradient that reaches the normalized value, as a function of (offset, channel).
template <class T>
auto gradient_of_y(const KernelArgs& args, const Normalisation<T>& n, bool relu) {
  return
      [dy = args.in[0].as<const T>(), x = args.in[1].as<const T>(), n, relu](size_t i, size_t c) {
        return relu ? formula::relu_gradient(n(x[i], c), dy[i]) : dy[i];
      };
}

std::vector<TensorDesc> infer_sums(std::span<const TensorDesc> in, const BatchNorm& s) {
  constexpr std::string_view kOp = "batch_norm_sums";
  need_gradient(kOp, in);
  for (const TensorDesc& d : in.subspan(3))
    need_shape(kOp, d, s.add ? in[1].shape : Shape{channels_of(in[1])});
  const TensorDesc sums = f64({in[2].shape[0] + 1});
  return s.add ? std::vector{in[0], sums} : std::vector{sums};
}

void sums(const KernelArgs& args, const BatchNorm& s) {
  with_type_of(args.in[0], [&]<class T>(T) {
    if (!s.add) {
      const Normalisation<T> n(args, 2, 3);
      sum_gradient(args.in[1], n, args.out[0].as<double>(), gradient_of_y(args, n, s.relu));
      return;
    }
    const auto dy = args.in[0].as<const T>(), y = args.in[3].as<const T>(),
               dy2 = optional_input<T>(args, 4);
    const auto dr = args.out[0].as<T>();
    const auto round = rounding_between<T>(s);
    for (size_t i = 0; i < dr.size(); ++i)
      dr[i] = round(formula::relu_gradient(y[i], dy2.empty() ? dy[i] : dy[i] + dy2[i]));
    sum_gradient(args.in[1], Normalisation<T>(args, 2, args.in.size()), args.out[1].as<double>(),
                 [&](size_t i, size_t) { return dr[i]; });
  });
}

std::vector<TensorDesc> infer_input_gradient(std::span<const TensorDesc> in,
                                             const BatchNorm& attrs) {
  constexpr std::string_view kOp = "batch_norm_input_gradient";
  need_gradient(kOp, in);
  const int64_t c = channels_of(in[1]);
  size_t at = 3;
  if (attrs.batch) need_shape(kOp, in[at++], {2 * c + 1});
  for (const TensorDesc& p : in.subspan(at)) need_shape(kOp, p, {c});
  return {in[0]};
}

// dx = rstd * w * (dy - mean(dy) - h * mean(dy * h)), h the normalized x. With running statistics
// the moments are constants, and both means are left out.
void input_gradient(const KernelArgs& args, const BatchNorm& s) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const Normalisation<T> n(args, 2, s.batch ? 4 : 3);
    const auto sums = s.batch ? args.in[3].as<const double>() : std::span<const double>{};
    const auto x = args.in[1].as<const T>();
    const auto dx = args.out[0].as<T>();
    const auto dy = gradient_of_y(args, n, s.relu);
    each_element(args.in[1], [&](size_t i, size_t c) {
      auto d = static_cast<double>(dy(i, c));
      if (!sums.empty())
        d -= (sums[c] + n.normalised(x[i], c) * sums[n.channels() + c]) / sums.back();
      dx[i] = static_cast<T>(d * n.rstd(c) * n.weight(c));
    });
  });
}

std::vector<TensorDesc> infer_weight_gradient(std::span<const TensorDesc> in) {
  need_shape("batch_norm_weight_gradient", in[0], {2 * in[1].shape[0] + 1});
  return {in[1], in[1]};
}

void weight_gradient(const KernelArgs& args) {
  const auto sums = args.in[0].as<const double>();
  with_type_of(args.out[0], [&]<class T>(T) {
    const auto dw = args.out[0].as<T>(), db = args.out[1].as<T>();
    for (size_t c = 0; c < dw.size(); ++c) {
      db[c] = static_cast<T>(sums[c]);
      dw[c] = static_cast<T>(sums[dw.size() + c]);
    }
  });
}

std::vector<TensorDesc> infer_backward(std::span<const TensorDesc> in, const BatchNorm& attrs) {
  constexpr std::string_view kOp = "batch_norm_backward";
  need_gradient(kOp, in);
  need_shape(kOp, in[3], {channels_of(in[1])});
  for (const TensorDesc& image : in.subspan(4)) need_shape(kOp, image, in[1].shape);
  std::vector<TensorDesc> out = {in[1], in[3], in[3]};
  if (attrs.add) out.push_back(in[1]);
  return out;
}

// Runs the operators that it replaces. If dr is not a result, it is computed in the memory of dx.
void backward(const KernelArgs& args, const BatchNorm& s) {
  std::vector<double> numbers(static_cast<size_t>(2 * channels_of(args.in[1].desc) + 1));
  const TensorView sums{f64({std::ssize(numbers)}), reinterpret_cast<std::byte*>(numbers.data())};
  const TensorView x = args.in[1], moments = args.in[2], w = args.in[3];
  const auto run = [&](std::string_view step, const std::vector<TensorView>& in,
                       const std::vector<TensorView>& out, bool relu) {
    BatchNorm of_step = s;
    of_step.add = of_step.relu = relu;
    op(step).reference({in, out, args.context}, of_step);
  };
  TensorView dr = args.in[0];
  if (s.relu) {
    std::vector<TensorView> in = {args.in[0], x, moments, args.in[4]};
    if (args.in.size() > 5) in.push_back(args.in[5]);
    dr = s.add ? args.out[3] : args.out[0];
    run("batch_norm_sums", in, {dr, sums}, true);
  } else {
    run("batch_norm_sums", {dr, x, moments}, {sums}, false);
  }
  run("batch_norm_weight_gradient", {sums, w}, {args.out[1], args.out[2]}, false);
  run("batch_norm_input_gradient", {dr, x, moments, sums, w}, {args.out[0]}, false);
}

}  // namespace

Operators batch_norm_gradient() {
  return {{.name = "batch_norm_sums",
           .precision = Precision::full,
           .infer = typed<infer_sums>,
           .reference = typed<sums>,
           .flops = elements_of_first_input,
           .layouts = Layouts::images,
           .variant = typed<variant_of>},
          {.name = "batch_norm_input_gradient",
           .precision = Precision::full,
           .infer = typed<infer_input_gradient>,
           .reference = typed<input_gradient>,
           .layouts = Layouts::images,
           .traits = Trait::backward,
           .variant = typed<variant_of>},
          {.name = "batch_norm_weight_gradient",
           .precision = Precision::full,
           .infer = typed<infer_weight_gradient>,
           .reference = typed<weight_gradient>,
           .traits = Trait::backward},
          {.name = "batch_norm_backward",
           .precision = Precision::statistics,
           .infer = typed<infer_backward>,
           .reference = typed<backward>,
           .flops = elements_of_first_input,
           .layouts = Layouts::images,
           .traits = Trait::backward,
           .variant = typed<variant_of>}};
}

}  // namespace dpt::operators
