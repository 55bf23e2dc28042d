// triplet_margin_loss: max(0, d(a, p) - d(a, n) + margin) for each sample with the vectors a
// (anchor), p (positive) and n (negative), output[N, 3, D]. d(x, y) is the p-norm of x - y + eps.
// With swap, d(p, n) replaces d(a, n) where it is smaller (Balntas et al., 2016). Targets are not
// used.
#include <array>
#include <cmath>

#include "graph/operators/losses/loss_support.h"

namespace dpt::operators {
namespace {

void check(std::span<const TensorDesc> in) {
  const TensorDesc& y = in[0];
  need_real("triplet_margin_loss", y);
  if (y.shape.rank() != 3 || y.shape[1] != 3)
    fail(Fault::spec, "triplet_margin_loss: output {} must be [N, 3, D]", str(y));
  need_divisor(y, in[1]);
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
  return loss_gradient(g, n, "triplet_margin_loss_gradient", dy);
}

template <class T>
double distance(const T* x, const T* y, size_t width, const TripletMargin& s) {
  double sum = 0;
  for (size_t i = 0; i < width; ++i)
    sum += std::pow(std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i]) + s.eps), s.p);
  return std::pow(sum, 1 / s.p);
}

// Adds `slope` times the gradient of distance(x, y), which is `d`, to those of x and y.
template <class T>
void add_slopes(const T* x, const T* y, size_t width, const TripletMargin& s, double d,
                double slope, double* dx, double* dy) {
  if (slope == 0 || d == 0) return;
  for (size_t i = 0; i < width; ++i) {
    const double apart = static_cast<double>(x[i]) - static_cast<double>(y[i]) + s.eps;
    const double sign = apart < 0 ? -1 : apart > 0 ? 1 : 0;
    const double change = slope * sign * std::pow(std::abs(apart) / d, s.p - 1);
    dx[i] += change;
    dy[i] -= change;
  }
}

// The distances of a sample's vectors, and its loss.
struct Triplet {
  double positive, negative, swapped;
  double loss;
  // Of the negative distance and the swapped one, the share that the loss has: equal ones have half
  // each, as in PyTorch.
  double swapped_share;
};

template <class T>
Triplet triplet_of(const T* y, size_t width, const TripletMargin& s) {
  const T *const p = y + width, *const n = p + width;
  Triplet out{.positive = distance(y, p, width, s), .negative = distance(y, n, width, s)};
  out.swapped = s.swap ? distance(p, n, width, s) : out.negative;
  if (s.swap)
    out.swapped_share = out.swapped < out.negative ? 1 : out.swapped == out.negative ? 0.5 : 0;
  out.loss = out.positive - std::min(out.negative, out.swapped) + s.margin;
  return out;
}

void forward(const KernelArgs& args, const std::any& attrs) {
  const auto& s = settings<TripletMargin>(attrs);
  const auto width = static_cast<size_t>(args.in[0].desc.shape[2]);
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto y = args.in[0].as<const T>();
    double sum = 0;
    for (size_t at = 0; at < y.size(); at += 3 * width)
      sum += std::max(0.0, triplet_of(y.data() + at, width, s).loss);
    args.out[0].as<double>()[0] = sum / static_cast<double>(args.in[1].as<const T>()[0]);
  });
}

void backward(const KernelArgs& args, const std::any& attrs) {
  const auto& s = settings<TripletMargin>(attrs);
  const auto width = static_cast<size_t>(args.in[0].desc.shape[2]);
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto all = args.in[0].as<const T>();
    const double slope = 1 / static_cast<double>(args.in[1].as<const T>()[0]);
    std::vector<double> sums(all.size());
    for (size_t at = 0; at < all.size(); at += 3 * width) {
      const T *const a = all.data() + at, *const p = a + width, *const n = p + width;
      const Triplet t = triplet_of(a, width, s);
      if (t.loss < 0) continue;
      double *const da = &sums[at], *const dp = da + width, *const dn = dp + width;
      add_slopes(a, p, width, s, t.positive, slope, da, dp);
      add_slopes(a, n, width, s, t.negative, -slope * (1 - t.swapped_share), da, dn);
      add_slopes(p, n, width, s, t.swapped, -slope * t.swapped_share, dp, dn);
    }
    const auto dx = args.out[0].as<T>();
    for (size_t i = 0; i < dx.size(); ++i) dx[i] = static_cast<T>(sums[i]);
  });
}

// With a large margin no loss is below 0, where the slope jumps.
std::vector<Sample> samples_of(std::string_view op, bool gradient) {
  std::vector<Sample> out;
  for (const TripletMargin& s : {TripletMargin{.margin = 100}, TripletMargin{.margin = 100, .p = 3},
                                 TripletMargin{.margin = 100, .eps = 0.1, .swap = true}})
    for (const Shape& y : {Shape{3, 3, 5}, Shape{2, 3, 17}})
      out.push_back({{op, {f32(y), f32({1})}, {gradient ? f32(y) : TensorDesc{DType::f64, {1}}}, s},
                     {{-2, 2}, {1, 8}}});
  return out;
}

}  // namespace

OperatorType triplet_margin_loss() {
  return {.name = "triplet_margin_loss",
          .precision = Precision::full,
          .infer = infer,
          .gradient = gradient,
          .reference = forward,
          .samples = [] { return samples_of("triplet_margin_loss", false); },
          .flops = elements_of_first_input};
}

OperatorType triplet_margin_loss_gradient() {
  return {.name = "triplet_margin_loss_gradient",
          .precision = Precision::full,
          .infer = infer_gradient,
          .reference = backward,
          .samples = [] { return samples_of("triplet_margin_loss_gradient", true); },
          .backward = true};
}

}  // namespace dpt::operators
