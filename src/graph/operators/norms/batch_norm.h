// Helpers of the batch norm operators. moments[2 C]: the mean of each channel, then its rstd, 1 /
// sqrt(variance + eps). sums[2 C + 1]: two sums for each channel, then the number of elements per
// channel.
#pragma once

#include <algorithm>

#include "graph/operators/images/image.h"

namespace dpt::operators {

// Range of moments and sums in samples: rstd and counts must be positive.
inline constexpr Sample::Range kPositive{0.5, 2};

inline TensorDesc f64(Shape s) { return {DType::f64, s}; }

inline int64_t channels_of(const TensorDesc& x) { return x.shape[1]; }

inline void need_channels(std::string_view op, const TensorDesc& x) {
  need_real(op, x);
  if (x.shape.rank() < 2 || x.shape.rank() > 4)
    fail(Fault::spec, "{}: takes [N, C], [N, C, W] or [N, C, H, W], not {}", op, x.shape.str());
}

inline void need_shape(std::string_view op, const TensorDesc& d, const Shape& wanted) {
  if (d.shape != wanted)
    fail(Fault::spec, "{}: {} does not fit the channels, which take {}", op, d.shape.str(),
         wanted.str());
}

// Checks x, in[0], against the inputs from index `moments` on: the moments and, optionally, the
// weight and the bias.
inline void need_normalisation(std::string_view op, std::span<const TensorDesc> in,
                               size_t moments) {
  need_channels(op, in[0]);
  const int64_t c = channels_of(in[0]);
  need_shape(op, in[moments], {2 * c});
  for (const TensorDesc& p : in.subspan(moments + 1)) need_shape(op, p, {c});
}

// Checks the inputs dy, x and moments.
inline void need_gradient(std::string_view op, std::span<const TensorDesc> in) {
  need_channels(op, in[1]);
  need_shape(op, in[0], in[1].shape);
  need_shape(op, in[2], {2 * channels_of(in[1])});
}

// Calls f(offset, channel) for all elements.
template <class F>
void each_element(const TensorView& x, F f) {
  const Image image(x);
  image.each([&](int64_t n, int64_t c, int64_t h, int64_t w) {
    f(image.at(n, c, h, w), static_cast<size_t>(c));
  });
}

inline double elements_of_channel(const TensorView& x) {
  return static_cast<double>(x.desc.shape.elements()) /
         static_cast<double>(std::max<int64_t>(1, channels_of(x.desc)));
}

template <class T>
std::span<const T> optional_input(const KernelArgs& args, size_t i) {
  return args.in.size() > i ? args.in[i].as<const T>() : std::span<const T>{};
}

// (x - mean[c]) * rstd[c] * w[c] + b[c], computed in double and rounded once.
template <class T>
class Normalisation {
 public:
  // Indices of the moments and of the weight among the inputs; the bias follows the weight.
  Normalisation(const KernelArgs& args, size_t moments, size_t weight)
      : moments_(args.in[moments].as<const double>()),
        w_(optional_input<T>(args, weight)),
        b_(optional_input<T>(args, weight + 1)) {}
  double mean(size_t c) const { return moments_[c]; }
  double rstd(size_t c) const { return moments_[channels() + c]; }
  double weight(size_t c) const { return w_.empty() ? 1 : static_cast<double>(w_[c]); }
  size_t channels() const { return moments_.size() / 2; }
  double normalised(T x, size_t c) const { return (static_cast<double>(x) - mean(c)) * rstd(c); }
  T operator()(T x, size_t c) const {
    return static_cast<T>(normalised(x, c) * weight(c) +
                          (b_.empty() ? 0 : static_cast<double>(b_[c])));
  }

 private:
  std::span<const double> moments_;
  std::span<const T> w_, b_;
};

// Gradients of a batch norm. x includes the gradient through the batch's moments.
struct BatchNormGradients {
  ValueId x, w = kNoValue, b = kNoValue;
};
// Adds the gradient nodes of a batch norm with attributes `attrs`. in: dy, x and moments. affine:
// [w, [b]] or empty. input_gradient: the operator for dx; it takes `in`, [the sums], and the first
// `weights` of `affine`. sums: kNoValue if neither the moments nor the weights need them.
inline BatchNormGradients gradients_from_sums(GraphBuilder& g, std::string_view input_gradient,
                                              std::vector<ValueId> in, ValueId sums,
                                              std::span<const ValueId> affine, size_t weights,
                                              const std::any& attrs) {
  BatchNormGradients out{};
  if (settings<BatchNorm>(attrs).batch) in.push_back(g.apply("all_reduce", {sums}));
  if (!affine.empty()) {
    out.w = g.apply("batch_norm_weight_gradient", {sums, affine[0]});
    if (affine.size() > 1) out.b = g.graph().nodes.back().out[1];
  }
  for (ValueId v : affine.first(std::min(weights, affine.size()))) in.push_back(v);
  out.x = g.apply(input_gradient, in, attrs);
  return out;
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

// dx = rstd * w * (dy - mean(dy) - h * mean(dy * h)), h the normalized x. If `sums` is empty the
// moments are constants, and both means are left out.
template <class T, class Dy>
void gradient_of_input(const TensorView& x, const Normalisation<T>& n, std::span<const double> sums,
                       std::span<T> dx, Dy dy) {
  const auto values = x.as<const T>();
  each_element(x, [&](size_t i, size_t c) {
    auto d = static_cast<double>(dy(i, c));
    if (!sums.empty())
      d -= (sums[c] + n.normalised(values[i], c) * sums[n.channels() + c]) / sums.back();
    dx[i] = static_cast<T>(d * n.rstd(c) * n.weight(c));
  });
}

// Checks dy, x, moments, [sums] and further inputs [C].
inline void need_input_gradient(std::string_view op, std::span<const TensorDesc> in,
                                const std::any& attrs) {
  need_gradient(op, in);
  const int64_t c = channels_of(in[1]);
  size_t at = 3;
  if (settings<BatchNorm>(attrs).batch) need_shape(op, in[at++], {2 * c + 1});
  for (const TensorDesc& p : in.subspan(at)) need_shape(op, p, {c});
}

// Samples of an operator with `images` inputs of one shape, moments, and 0 to 2 inputs [C].
// out(shape) is its result.
template <class Out>
std::vector<Sample> affine_samples(std::string_view op, size_t images, const std::any& attrs,
                                   Out out) {
  std::vector<Sample> samples;
  std::vector<Sample::Range> ranges(images);
  ranges.push_back(kPositive);
  for (const Shape& s : {Shape{3, 2}, Shape{2, 17, 5}, Shape{3, 16, 2, 3}}) {
    std::vector<TensorDesc> in(images, f32(s));
    in.push_back(f64({2 * s[1]}));
    for (int weights = 0; weights <= 2; ++weights, in.push_back(f32({s[1]})))
      samples.push_back({{op, in, {out(s)}, attrs}, ranges});
  }
  return samples;
}

// Samples of an input gradient, with and without sums, with 0 to `weights` inputs [C].
inline std::vector<Sample> input_gradient_samples_of(std::string_view op, size_t weights) {
  std::vector<Sample> out;
  for (const Shape& s : {Shape{3, 2}, Shape{2, 17, 5}, Shape{3, 16, 2, 3}})
    for (const bool batch : {false, true})
      for (size_t n = 0; n <= weights; ++n) {
        std::vector<TensorDesc> in = {f32(s), f32(s), f64({2 * s[1]})};
        std::vector<Sample::Range> ranges = {{}, {}, kPositive};
        if (batch) {
          in.push_back(f64({2 * s[1] + 1}));
          ranges.push_back(kPositive);
        }
        in.insert(in.end(), n, f32({s[1]}));
        out.push_back({{op, in, {f32(s)}, BatchNorm{.batch = batch}}, ranges});
      }
  return out;
}

}  // namespace dpt::operators
