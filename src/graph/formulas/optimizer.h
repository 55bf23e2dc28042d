// Optimizer updates of one element, as in the single-tensor functions of torch/optim/*.py on a CPU:
// the same operations in the same order.
//
// T is float, or double in tests. The caller computes step-dependent scalars in double and rounds
// them to T, as PyTorch does with Python numbers; t counts steps from 1. States start at 0
// (adagrad's at initial_accumulator_value). Flags are equal for all elements, so callers can hoist
// the branches on them out of the loop.
#pragma once

#include "graph/formulas/formulas.h"

namespace dpt::formula {

#ifdef __CUDACC__
DPT_FORMULA float square_root(float x) { return ::sqrtf(x); }
DPT_FORMULA double square_root(double x) { return ::sqrt(x); }
#else
DPT_FORMULA float square_root(float x) { return __builtin_sqrtf(x); }
DPT_FORMULA double square_root(double x) { return __builtin_sqrt(x); }
#endif

template <class T>
struct Sgd {
  T lr, momentum = 0, one_minus_dampening = 1, weight_decay = 0;
  bool nesterov = false, maximize = false;
  bool first_step = false;  // there is no momentum buffer yet: it becomes the gradient
};

// State 0: momentum_buffer, unused if momentum is 0.
template <class T>
DPT_FORMULA void sgd(const Sgd<T>& s, T& weight, T* momentum_buffer, T gradient) {
  T g = s.maximize ? -gradient : gradient;
  if (s.weight_decay != 0) g = g + s.weight_decay * weight;
  if (s.momentum != 0) {
    const T b = s.first_step ? g : s.momentum * *momentum_buffer + s.one_minus_dampening * g;
    *momentum_buffer = b;
    g = s.nesterov ? g + s.momentum * b : b;
  }
  weight = weight - s.lr * g;
}

// Adam, and AdamW, which is Adam with decoupled weight decay.
template <class T>
struct Adam {
  T step_size;  // lr / (1 - beta1^t)
  T one_minus_beta1;
  T beta2, one_minus_beta2;
  T inverse_correction;  // 1 / sqrt(1 - beta2^t)
  T eps;
  T weight_decay = 0;  // adam: added to the gradient; adam_w: 0
  T keep = 1;          // adam_w: 1 - lr * weight_decay; adam: 1
  bool amsgrad = false, maximize = false;
};

// Updates the moments: exp_avg, exp_avg_sq and, for amsgrad, max_exp_avg_sq. Returns v in the
// update weight -= step_size * exp_avg / (sqrt(v) / sqrt(1 - beta2^t) + eps). PyTorch divides
// sqrt(v) by sqrt(1 - beta2^t) where adam() multiplies by the inverse; results differ by one
// rounding.
template <class T>
DPT_FORMULA T adam_moments(const Adam<T>& s, T weight, T& exp_avg, T& exp_avg_sq, T* max_exp_avg_sq,
                           T gradient) {
  T g = s.maximize ? -gradient : gradient;
  if (s.weight_decay != 0) g = g + s.weight_decay * weight;
  exp_avg = exp_avg + s.one_minus_beta1 * (g - exp_avg);
  exp_avg_sq = exp_avg_sq * s.beta2 + s.one_minus_beta2 * g * g;
  if (!s.amsgrad) return exp_avg_sq;
  const T top = exp_avg_sq < *max_exp_avg_sq ? *max_exp_avg_sq : exp_avg_sq;  // keeps nan
  *max_exp_avg_sq = top;
  return top;
}

template <class T>
DPT_FORMULA void adam(const Adam<T>& s, T& weight, T& exp_avg, T& exp_avg_sq, T* max_exp_avg_sq,
                      T gradient) {
  weight = weight * s.keep;
  const T square = adam_moments(s, weight, exp_avg, exp_avg_sq, max_exp_avg_sq, gradient);
  const T denominator = square_root(square) * s.inverse_correction + s.eps;
  weight = weight - s.step_size * exp_avg / denominator;
}

template <class T>
struct RmsProp {
  T lr, alpha, one_minus_alpha, eps, momentum = 0, weight_decay = 0;
  bool centered = false, maximize = false;
};

// States: square_avg, momentum_buffer (momentum > 0), grad_avg (centered).
template <class T>
DPT_FORMULA void rms_prop(const RmsProp<T>& s, T& weight, T& square_avg, T* momentum_buffer,
                          T* grad_avg, T gradient) {
  T g = s.maximize ? -gradient : gradient;
  if (s.weight_decay != 0) g = g + s.weight_decay * weight;
  square_avg = square_avg * s.alpha + s.one_minus_alpha * g * g;
  T square = square_avg;
  if (s.centered) {
    const T mean = *grad_avg + s.one_minus_alpha * (g - *grad_avg);
    *grad_avg = mean;
    square = square - mean * mean;
  }
  const T denominator = square_root(square) + s.eps;
  if (s.momentum > 0) {
    const T b = *momentum_buffer * s.momentum + g / denominator;
    *momentum_buffer = b;
    weight = weight - s.lr * b;
  } else {
    weight = weight - s.lr * g / denominator;
  }
}

template <class T>
struct Adagrad {
  T clr;  // lr / (1 + (t - 1) * lr_decay)
  T eps, weight_decay = 0;
  bool maximize = false;
};

// State 0: sum.
template <class T>
DPT_FORMULA void adagrad(const Adagrad<T>& s, T& weight, T& sum, T gradient) {
  T g = s.maximize ? -gradient : gradient;
  if (s.weight_decay != 0) g = g + s.weight_decay * weight;
  sum = sum + g * g;
  weight = weight - s.clr * g / (square_root(sum) + s.eps);
}

template <class T>
struct Adadelta {
  T lr, rho, one_minus_rho, eps, weight_decay = 0;
  bool maximize = false;
};

// States: square_avg, acc_delta.
template <class T>
DPT_FORMULA void adadelta(const Adadelta<T>& s, T& weight, T& square_avg, T& acc_delta,
                          T gradient) {
  T g = s.maximize ? -gradient : gradient;
  if (s.weight_decay != 0) g = g + s.weight_decay * weight;
  square_avg = square_avg * s.rho + s.one_minus_rho * g * g;
  const T delta = square_root(acc_delta + s.eps) / square_root(square_avg + s.eps) * g;
  acc_delta = acc_delta * s.rho + s.one_minus_rho * delta * delta;
  weight = weight - s.lr * delta;
}

}  // namespace dpt::formula
