// gaussian_nll_loss: (log(v) + (m - t)^2 / v) / 2, the negative log-likelihood of a target t under
// a normal distribution whose mean m and variance v the model gives. It is not pointwise, since a
// target has two outputs; layers/losses/gaussian_nll_loss.cpp says which.
#pragma once

#include "graph/formulas/loss.h"

namespace dpt::formula {

// A term of the loss, and its derivatives by the mean and by the output that gives the variance.
template <class T>
struct GaussianTerm {
  T value, mean_slope, variance_slope;
};

// Variances below eps count as eps; their slope is that at eps, as in PyTorch.
struct GaussianNll {
  bool log_variance = false, full = false;
  double eps = 1e-6;
  static constexpr Parameter<GaussianNll> kParameters[] = {
      {"log_variance", &GaussianNll::log_variance,
       "whether the second half of the outputs are log-variances, which may be negative"},
      {"full", &GaussianNll::full, "whether to add log(2 pi) / 2, which changes no gradient"},
      {"eps", &GaussianNll::eps,
       "lower bound of variances; smaller ones, also negative ones, count as this", kAboveZero}};

  template <class T>
  DPT_METHOD GaussianTerm<T> term(T mean, T output, T t) const {
    constexpr double kLogTwoPi = 1.8378770664093453;
    const T variance = log_variance ? exp(output) : output;
    const T v = select(variance > T(eps), variance, T(eps)), apart = mean - t;
    const T slope = (T(1) - apart * apart / v) / (T(2) * v);
    return {(log(v) + apart * apart / v + T(full ? kLogTwoPi : 0)) / T(2), apart / v,
            log_variance ? slope * variance : slope};
  }
};

}  // namespace dpt::formula
