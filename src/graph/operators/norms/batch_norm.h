// Helpers of the batch norm operators. moments[2 C]: the mean of each channel, then its rstd, 1 /
// sqrt(variance + eps). sums[2 C + 1]: two sums for each channel, then the number of elements per
// channel.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "graph/operators/images/image.h"

namespace dpt::operators {

inline std::string variant_of(const BatchNorm& s) {
  std::string out;
  for (const auto& [on, word] :
       {std::pair{s.add, "add"}, {s.relu, "relu"}, {s.training, "training"}})
    if (on) out += (out.empty() ? "" : ",") + std::string(word);
  return out;
}

// Rounds as storing a half between the replaced operators would.
template <class T>
auto rounding_between(const BatchNorm& s) {
  return [half = s.between](T x) {
    return half == DType::f32 ? x : static_cast<T>(rounded_to(half, static_cast<float>(x)));
  };
}

inline TensorDesc f64(Shape s) { return {DType::f64, s}; }

inline int64_t channels_of(const TensorDesc& x) { return x.shape[1]; }

inline void need_channels(std::string_view op, const TensorDesc& x) {
  need_real(op, x);
  if (x.shape.rank() < 2 || x.shape.rank() > 5)
    fail(Fault::spec, "{}: takes [N, C, ...] with at most 3 more dimensions, not {}", op,
         x.shape.str());
}

inline void need_shape(std::string_view op, const TensorDesc& d, const Shape& wanted) {
  if (d.shape != wanted)
    fail(Fault::spec, "{}: {} does not fit the channels, which take {}", op, d.shape.str(),
         wanted.str());
}

// Calls f(offset, channel) for all elements.
template <class F>
void each_element(const TensorView& x, F f) {
  const Image image(x);
  image.each([&](int64_t n, int64_t c, const Extents& p) {
    f(image.at(n, c, p), static_cast<size_t>(c));
  });
}

inline double elements_of_channel(const TensorView& x) {
  return static_cast<double>(x.desc.shape.elements()) /
         static_cast<double>(std::max<int64_t>(1, channels_of(x.desc)));
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

}  // namespace dpt::operators
