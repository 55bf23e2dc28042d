// Activation functions and their gradients as in PyTorch, on a scalar or a vector of scalars. A
// gradient is dy * f'(x), computed from the result y if PyTorch saves y, otherwise from x.
#pragma once

#include "graph/formulas/math.h"

namespace dpt::formula {

// A nan passes through, because comparisons with nan are false.
template <class T>
DPT_FORMULA T relu(T x) {
  return select(x <= T(0), T(0), x);
}
template <class T>
DPT_FORMULA T relu_gradient(T y, T dy) {
  return select(y <= T(0), T(0), dy);
}

// min(max(x, 0), 6). The gradient depends on y as it does on x.
template <class T>
DPT_FORMULA T relu6(T x) {
  return select(x <= T(0), T(0), select(x >= T(6), T(6), x));
}
template <class T>
DPT_FORMULA T relu6_gradient(T y, T dy) {
  return select(y <= T(0), T(0), select(y >= T(6), T(0), dy));
}

template <class T>
DPT_FORMULA T leaky_relu(T x, T slope) {
  return select(x > T(0), x, x * slope);
}
template <class T>
DPT_FORMULA T leaky_relu_gradient(T x, T dy, T slope) {
  return select(x > T(0), dy, dy * slope);
}

template <class T>
DPT_FORMULA T elu(T x, T alpha) {
  return select(x > T(0), x, alpha * expm1(x));
}
template <class T>
DPT_FORMULA T elu_gradient(T x, T dy, T alpha) {
  return select(x > T(0), dy, dy * (alpha * exp(x)));
}

// Klambauer et al., "Self-Normalizing Neural Networks", 2017, equation 2 and its constants.
template <class T>
DPT_FORMULA T selu(T x) {
  return T(1.0507009873554804934193349852946) * elu(x, T(1.6732632423543772848170429916717));
}
template <class T>
DPT_FORMULA T selu_gradient(T x, T dy) {
  return T(1.0507009873554804934193349852946) *
         elu_gradient(x, dy, T(1.6732632423543772848170429916717));
}

template <class T>
DPT_FORMULA T gelu(T x) {  // x * Phi(x), Phi: the standard normal distribution
  return T(0.5) * x * (T(1) + erf(x * T(0.70710678118654752440)));
}
template <class T>
DPT_FORMULA T gelu_gradient(T x, T dy) {
  const T share = T(0.5) * (T(1) + erf(x * T(0.70710678118654752440)));
  const T density = exp(T(-0.5) * x * x) * T(0.39894228040143267794);
  return dy * (share + x * density);
}

// Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016: the approximation with tanh.
template <class T>
DPT_FORMULA T gelu_tanh(T x) {
  const T u = T(0.79788456080286535588) * (x + T(0.044715) * x * x * x);
  return T(0.5) * x * (T(1) + tanh(u));
}
template <class T>
DPT_FORMULA T gelu_tanh_gradient(T x, T dy) {
  const T t = tanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x));
  const T du = T(0.79788456080286535588) * (T(1) + T(0.134145) * x * x);
  return dy * (T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * du);
}

template <class T>
DPT_FORMULA T sigmoid(T x) {
  return reciprocal(T(1) + exp(-x));
}
template <class T>
DPT_FORMULA T sigmoid_gradient(T y, T dy) {
  return dy * ((T(1) - y) * y);
}

template <class T>
DPT_FORMULA T silu(T x) {
  return x * sigmoid(x);
}
template <class T>
DPT_FORMULA T silu_gradient(T x, T dy) {
  const T s = sigmoid(x);
  return dy * (s * (T(1) + x * (T(1) - s)));
}

template <class T>
DPT_FORMULA T tanh_gradient(T y, T dy) {
  return dy * (T(1) - y * y);
}

template <class T>
DPT_FORMULA T softplus(T x, T beta, T threshold) {
  const T z = x * beta;
  return select(z > threshold, x, log1p(exp(z)) / beta);
}
template <class T>
DPT_FORMULA T softplus_gradient(T x, T dy, T beta, T threshold) {
  const T z = x * beta;
  return select(z > threshold, dy, dy * sigmoid(z));
}

template <class T>
DPT_FORMULA T hardswish(T x) {
  const T up = x + T(3);
  const T held = select(up < T(0), T(0), select(up > T(6), T(6), up));
  return x * held * T(1.0 / 6);
}
template <class T>
DPT_FORMULA T hardswish_gradient(T x, T dy) {
  const T middle = dy * (x * T(1.0 / 3) + T(0.5));
  return select(x <= T(-3), T(0), select(x < T(3), middle, dy));
}

}  // namespace dpt::formula
