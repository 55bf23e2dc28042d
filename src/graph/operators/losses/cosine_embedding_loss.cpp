// cosine_embedding_loss: for each sample with the vectors a and b, output[N, 2, D], and the target
// 1 or -1 in [N, 1]: 1 - cos(a, b) for a target of 1, max(0, cos(a, b) - margin) for -1, else 0.
// cos(a, b) = a b / sqrt((a a + 1e-12) (b b + 1e-12)), as in PyTorch.
#include <cmath>

#include "graph/operators/losses/loss_support.h"

namespace dpt::operators {
namespace {

constexpr double kLeastSquare = 1e-12;

void check(std::span<const TensorDesc> in) {
  const TensorDesc &y = in[0], &t = in[1];
  need_real("cosine_embedding_loss", y);
  if (y.shape.rank() != 3 || y.shape[1] != 2)
    fail(Fault::spec, "cosine_embedding_loss: output {} must be [N, 2, D]", str(y));
  if (t != TensorDesc{y.dtype, {y.shape[0], 1}})
    fail(Fault::spec, "cosine_embedding_loss: targets {} must be {}[{}, 1]", str(t),
         name_of(y.dtype), y.shape[0]);
  need_divisor(y, in[2]);
}

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any&) {
  check(in);
  return one_double();
}

std::vector<TensorDesc> infer_gradient(std::span<const TensorDesc> in, const std::any&) {
  check(in);
  return {in[0]};
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  return loss_gradient(g, n, "cosine_embedding_loss_gradient", dy);
}

// The cosine of a sample's vectors; a, b and ab are their squares and their product.
struct Angle {
  double a = kLeastSquare, b = kLeastSquare, ab = 0;
  double root() const { return std::sqrt(a * b); }
  double cosine() const { return ab / root(); }
};

template <class T>
Angle angle_of(const T* y, size_t width) {
  Angle out;
  for (size_t i = 0; i < width; ++i) {
    const double a = static_cast<double>(y[i]), b = static_cast<double>(y[width + i]);
    out.a += a * a;
    out.b += b * b;
    out.ab += a * b;
  }
  return out;
}

// A sample's loss, and its slope in the cosine.
struct Term {
  double value = 0, slope = 0;
};

Term term_of(double cosine, double target, double margin) {
  if (target == 1) return {1 - cosine, -1};
  if (target != -1 || cosine <= margin) return {};
  return {cosine - margin, 1};
}

void forward(const KernelArgs& args, const std::any& attrs) {
  const double margin = settings<CosineEmbedding>(attrs).margin;
  const auto width = static_cast<size_t>(args.in[0].desc.shape[2]);
  with_type_of(args.in[0], [&]<class T>(T) {
    const T* const y = args.in[0].as<const T>().data();
    const auto t = args.in[1].as<const T>();
    double sum = 0;
    for (size_t n = 0; n < t.size(); ++n)
      sum += term_of(angle_of(y + n * 2 * width, width).cosine(), static_cast<double>(t[n]), margin)
                 .value;
    args.out[0].as<double>()[0] = sum / static_cast<double>(args.in[2].as<const T>()[0]);
  });
}

void backward(const KernelArgs& args, const std::any& attrs) {
  const double margin = settings<CosineEmbedding>(attrs).margin;
  const auto width = static_cast<size_t>(args.in[0].desc.shape[2]);
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto t = args.in[1].as<const T>();
    const double divisor = static_cast<double>(args.in[2].as<const T>()[0]);
    for (size_t n = 0; n < t.size(); ++n) {
      const T* const y = args.in[0].as<const T>().data() + n * 2 * width;
      T* const dy = args.out[0].as<T>().data() + n * 2 * width;
      const Angle angle = angle_of(y, width);
      const double root = angle.root(), cosine = angle.cosine();
      const double slope = term_of(cosine, static_cast<double>(t[n]), margin).slope / divisor;
      for (size_t i = 0; i < width; ++i) {
        const double a = static_cast<double>(y[i]), b = static_cast<double>(y[width + i]);
        dy[i] = static_cast<T>(slope * (b / root - cosine * a / angle.a));
        dy[width + i] = static_cast<T>(slope * (a / root - cosine * b / angle.b));
      }
    }
  });
}

// With the margin -1 no cosine lies below it, where the slope jumps.
std::vector<Sample> samples_of(std::string_view op, bool gradient) {
  std::vector<Sample> out;
  for (const double target : {1.0, -1.0})
    for (const Shape& y : {Shape{3, 2, 5}, Shape{2, 2, 17}})
      out.push_back({{op,
                      {f32(y), f32({y[0], 1}), f32({1})},
                      {gradient ? f32(y) : TensorDesc{DType::f64, {1}}},
                      CosineEmbedding{-1}},
                     {{-2, 2}, {target, target}, {1, 8}}});
  return out;
}

}  // namespace

OperatorType cosine_embedding_loss() {
  return {.name = "cosine_embedding_loss",
          .precision = Precision::full,
          .infer = infer,
          .gradient = gradient,
          .reference = forward,
          .samples = [] { return samples_of("cosine_embedding_loss", false); },
          .flops = elements_of_first_input};
}

OperatorType cosine_embedding_loss_gradient() {
  return {.name = "cosine_embedding_loss_gradient",
          .precision = Precision::full,
          .infer = infer_gradient,
          .reference = backward,
          .samples = [] { return samples_of("cosine_embedding_loss_gradient", true); },
          .backward = true};
}

}  // namespace dpt::operators
