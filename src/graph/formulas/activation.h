// What the formulas of activations share: each file in activations/ holds an activation and its
// gradient as in PyTorch, on a scalar or a vector of scalars (T). A gradient is dy * f'(x),
// computed from the result y if PyTorch saves y, otherwise from x.
//
// An activation is a struct with
//   its parameters, if any: members of type double with PyTorch's defaults, `kParameters`, which
//     lists them, and `kSamples`, values of them for tests
//   static constexpr ActivationRow kRow
//   T value(T x, T... parameters)
//   T gradient(T x or y, T dy, T... parameters)
//   const char* refuses() const, optional: what is wrong with the parameters; null: nothing
// Its name in activations.h makes the layer, the operators, the kernels of CPUs and GPUs, and the
// line of an exported program.
#pragma once

#include "graph/formulas/math.h"
#include "graph/formulas/parameter.h"

namespace dpt::formula {

struct ActivationRow {
  const char *name, *gradient;  // of the operators
  // Of the layer: its name in PyTorch, lines of a spec that use it, what it is. Null: the layer has
  // its own file.
  const char *torch = nullptr, *example = nullptr, *summary = nullptr;
  bool from_result = false;  // the gradient is computed from y
  // Each element of the result, or of the gradient, is an element of the input or 0.
  bool selects = false, gradient_selects = false;
  bool full_on_cuda = false;  // CUDA's autocast computes it in f32
  bool row_major = false;     // PyTorch's result is row-major, whatever the order of the input
  // Inputs of tests, which keep a distance from points where the derivative jumps.
  double low = -4, high = 4;
  double kinks[2] = {1e9, 1e9};
};

// The value and the gradient with parameters p, in the order of kParameters.
template <class F, class T>
DPT_FORMULA T value_of(T x, [[maybe_unused]] const T* p) {
  if constexpr (kParametersOf<F> == 0)
    return F::value(x);
  else if constexpr (kParametersOf<F> == 1)
    return F::value(x, p[0]);
  else
    return F::value(x, p[0], p[1]);
}
template <class F, class T>
DPT_FORMULA T gradient_of(T x, T dy, [[maybe_unused]] const T* p) {
  if constexpr (kParametersOf<F> == 0)
    return F::gradient(x, dy);
  else if constexpr (kParametersOf<F> == 1)
    return F::gradient(x, dy, p[0]);
  else
    return F::gradient(x, dy, p[0], p[1]);
}

// Formulas that several activations or operators use.

// A nan passes through, because comparisons with nan are false.
template <class T>
DPT_FORMULA T relu(T x) {
  return select(x <= T(0), T(0), x);
}
template <class T>
DPT_FORMULA T relu_gradient(T y, T dy) {
  return select(y <= T(0), T(0), dy);
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

template <class T>
DPT_FORMULA T sigmoid(T x) {
  return reciprocal(T(1) + exp(-x));
}
}  // namespace dpt::formula
