// One term of each element-wise loss, and its derivative with respect to the model's output x; t is
// the target. Formulas and limits are those of the losses in torch.nn.
#pragma once

#include "graph/formulas/math.h"

namespace dpt::formula {

template <class T>
DPT_FORMULA T mse(T x, T t) {
  return (x - t) * (x - t);
}
template <class T>
DPT_FORMULA T mse_slope(T x, T t) {
  return T(2) * (x - t);
}

template <class T>
DPT_FORMULA T sign(T d) {  // 0 for 0, nan for nan
  return select(d > T(0), T(1), select(d < T(0), T(-1), d));
}
template <class T>
DPT_FORMULA T l1(T x, T t) {
  return abs(x - t);
}
template <class T>
DPT_FORMULA T l1_slope(T x, T t) {
  return sign(x - t);
}

// beta = 0 gives l1, as in PyTorch.
template <class T>
DPT_FORMULA T smooth_l1(T x, T t, T beta) {
  const T d = abs(x - t);
  return select(d < beta, T(0.5) * d * d / beta, d - T(0.5) * beta);
}
template <class T>
DPT_FORMULA T smooth_l1_slope(T x, T t, T beta) {
  const T d = x - t;
  return select(abs(d) < beta, d / beta, sign(d));
}

template <class T>
DPT_FORMULA T huber(T x, T t, T delta) {
  const T d = abs(x - t);
  return select(d <= delta, T(0.5) * d * d, delta * (d - T(0.5) * delta));
}
template <class T>
DPT_FORMULA T huber_slope(T x, T t, T delta) {
  const T d = x - t;
  return select(abs(d) <= delta, d, delta * sign(d));
}

// As in PyTorch, logarithms are clamped to -100 and the derivative's denominator to 1e-12f, because
// x may be 0 or 1.
template <class T>
DPT_FORMULA T bce(T x, T t) {
  const T yes = log(x), no = log1p(-x);
  return (t - T(1)) * select(no < T(-100), T(-100), no) - t * select(yes < T(-100), T(-100), yes);
}
template <class T>
DPT_FORMULA T bce_slope(T x, T t) {
  const T both = (T(1) - x) * x;
  return (x - t) / select(both < T(1e-12f), T(1e-12f), both);
}

// p: pos_weight, the weight of the positive term.
template <class T>
DPT_FORMULA T bce_with_logits(T x, T t, T p) {
  const T weight = (p - T(1)) * t + T(1);
  const T below = select(x < T(0), -x, T(0));
  return (T(1) - t) * x + weight * (log1p(exp(-abs(x))) + below);
}
template <class T>
DPT_FORMULA T bce_with_logits_slope(T x, T t, T p) {
  const T positive = p * t;
  return (positive + T(1) - t) * reciprocal(T(1) + exp(-x)) - positive;
}

// q^gamma for 0 <= q <= 1.
template <class T>
DPT_FORMULA T focal_power(T q, T gamma) {
  return select(gamma == T(0), T(1), select(gamma == T(2), q * q, exp(gamma * log(q))));
}

// bce_with_logits with the factor q^gamma, where q is the probability of the other target, and with
// the weight alpha of positive and 1 - alpha of negative targets; alpha < 0: none. As
// torchvision.ops.sigmoid_focal_loss.
template <class T>
DPT_FORMULA T focal_weight(T t, T alpha) {
  return select(alpha < T(0), T(1), alpha * t + (T(1) - alpha) * (T(1) - t));
}
template <class T>
DPT_FORMULA T sigmoid_focal(T x, T t, T alpha, T gamma) {
  const T p = reciprocal(T(1) + exp(-x)), no = reciprocal(T(1) + exp(x));
  const T q = p * (T(1) - t) + no * t;
  return focal_weight(t, alpha) * focal_power(q, gamma) * bce_with_logits(x, t, T(1));
}
template <class T>
DPT_FORMULA T sigmoid_focal_slope(T x, T t, T alpha, T gamma) {
  const T p = reciprocal(T(1) + exp(-x)), no = reciprocal(T(1) + exp(x));
  const T q = p * (T(1) - t) + no * t;
  const T growth = select(q > T(0), p * no * (T(1) - T(2) * t) / q, T(0));  // of log q
  return focal_weight(t, alpha) * focal_power(q, gamma) *
         (p * (T(1) - t) - no * t + gamma * bce_with_logits(x, t, T(1)) * growth);
}

// -x (1 - exp(x))^gamma for a log-probability x: nll_loss with the factor of focal_loss.
template <class T>
DPT_FORMULA T focal(T x, T gamma) {
  return -x * focal_power(-expm1(x), gamma);
}
template <class T>
DPT_FORMULA T focal_slope(T x, T gamma) {
  const T q = -expm1(x);
  return focal_power(q, gamma) * (gamma * exp(x) * select(q > T(0), x / q, T(-1)) - T(1));
}

template <class T>
DPT_FORMULA T kl_div(T x, T t) {  // t log t is 0 for t = 0
  return select(t == T(0), T(0), t * log(t)) - t * x;
}
template <class T>
DPT_FORMULA T kl_div_slope(T, T t) {
  return -t;
}
template <class T>
DPT_FORMULA T kl_div_log_target(T x, T t) {
  return exp(t) * (t - x);
}
template <class T>
DPT_FORMULA T kl_div_log_target_slope(T, T t) {
  return -exp(t);
}

// poisson_nll_loss for the rate exp(x), and for the rate x. eps keeps the logarithm of a rate of 0
// finite.
template <class T>
DPT_FORMULA T poisson_nll_log_input(T x, T t) {
  return exp(x) - t * x;
}
template <class T>
DPT_FORMULA T poisson_nll_log_input_slope(T x, T t) {
  return exp(x) - t;
}
template <class T>
DPT_FORMULA T poisson_nll(T x, T t, T eps) {
  return x - t * log(x + eps);
}
template <class T>
DPT_FORMULA T poisson_nll_slope(T x, T t, T eps) {
  return T(1) - t / (x + eps);
}
// Stirling's approximation of log(t!), which does not depend on x.
template <class T>
DPT_FORMULA T stirling(T t) {
  constexpr double kTwoPi = 6.283185307179586;
  return select(t > T(1), t * log(t) - t + T(0.5f) * log(T(kTwoPi) * t), T(0));
}

// log(1 + exp(-t x)). PyTorch's overflows for large -t x.
template <class T>
DPT_FORMULA T soft_margin(T x, T t) {
  const T z = -t * x;
  return select(z > T(0), z, T(0)) + log1p(exp(-abs(z)));
}
template <class T>
DPT_FORMULA T soft_margin_slope(T x, T t) {
  return -t * reciprocal(T(1) + exp(t * x));
}

}  // namespace dpt::formula
