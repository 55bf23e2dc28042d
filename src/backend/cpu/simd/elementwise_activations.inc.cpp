// Activations and their gradients: the formulas of graph/formulas on vectors.
#include "backend/cpu/simd/elementwise.h"
#include "backend/cpu/simd/lanes_math.h"
#include "graph/formulas/activation.h"

namespace dpt::DPT_ISA {
namespace {

using A = Activation;

template <A kind>
DPT_SIMD Lanes value(Lanes x, Lanes s0, [[maybe_unused]] Lanes s1) {
  if constexpr (kind == A::relu) return formula::relu(x);
  if constexpr (kind == A::relu6) return formula::relu6(x);
  if constexpr (kind == A::leaky_relu) return formula::leaky_relu(x, s0);
  if constexpr (kind == A::elu) return formula::elu(x, s0);
  if constexpr (kind == A::selu) return formula::selu(x);
  if constexpr (kind == A::gelu) return formula::gelu(x);
  if constexpr (kind == A::gelu_tanh) return formula::gelu_tanh(x);
  if constexpr (kind == A::silu) return formula::silu(x);
  if constexpr (kind == A::sigmoid) return formula::sigmoid(x);
  if constexpr (kind == A::tanh) return tanh(x);
  if constexpr (kind == A::softplus) return formula::softplus(x, s0, s1);
  if constexpr (kind == A::hardswish) return formula::hardswish(x);
}

template <A kind>
DPT_SIMD Lanes slope(Lanes x, Lanes dy, Lanes s0, [[maybe_unused]] Lanes s1) {
  if constexpr (kind == A::relu) return formula::relu_gradient(x, dy);
  if constexpr (kind == A::relu6) return formula::relu6_gradient(x, dy);
  if constexpr (kind == A::leaky_relu) return formula::leaky_relu_gradient(x, dy, s0);
  if constexpr (kind == A::elu) return formula::elu_gradient(x, dy, s0);
  if constexpr (kind == A::selu) return formula::selu_gradient(x, dy);
  if constexpr (kind == A::gelu) return formula::gelu_gradient(x, dy);
  if constexpr (kind == A::gelu_tanh) return formula::gelu_tanh_gradient(x, dy);
  if constexpr (kind == A::silu) return formula::silu_gradient(x, dy);
  if constexpr (kind == A::sigmoid) return formula::sigmoid_gradient(x, dy);
  if constexpr (kind == A::tanh) return formula::tanh_gradient(x, dy);
  if constexpr (kind == A::softplus) return formula::softplus_gradient(x, dy, s0, s1);
  if constexpr (kind == A::hardswish) return formula::hardswish_gradient(x, dy);
}

template <A kind>
void forward(const float* x, float* y, size_t n, const float* s) {
  const Lanes s0 = all(s[0]), s1 = all(s[1]);
  each_vector(
      n, [&](size_t i, auto at)
             __attribute__((always_inline)) { at.put(y + i, value<kind>(at.get(x + i), s0, s1)); });
}

template <A kind>
void backward(const float* x, const float* dy, float* dx, size_t n, const float* s) {
  const Lanes s0 = all(s[0]), s1 = all(s[1]);
  each_vector(
      n, [&](size_t i, auto at) __attribute__((always_inline)) {
        at.put(dx + i, slope<kind>(at.get(x + i), at.get(dy + i), s0, s1));
      });
}

template <A kind>
void add_one(ElementwiseKernels& kernels) {
  kernels.activation[static_cast<int>(kind)] = forward<kind>;
  kernels.activation_gradient[static_cast<int>(kind)] = backward<kind>;
}

// Calls f(i, access, w) with the slopes of the elements from i.
template <class F>
DPT_SIMD void each_slope(const float* w, size_t step, size_t n, F f) {
  const Lanes one = all(step == 0 && n > 0 ? *w : 0.0F);
  each_vector(
      n, [&](size_t i, auto at)
             __attribute__((always_inline)) { f(i, at, step == 0 ? one : at.get(w + i)); });
}

void prelu(const float* x, const float* w, size_t step, float* y, size_t n) {
  each_slope(
      w, step, n, [&](size_t i, auto at, Lanes slope) __attribute__((always_inline)) {
        at.put(y + i, formula::leaky_relu(at.get(x + i), slope));
      });
}

void prelu_gradient(const float* dy, const float* x, const float* w, size_t step, float* dx,
                    size_t n) {
  each_slope(
      w, step, n, [&](size_t i, auto at, Lanes slope) __attribute__((always_inline)) {
        at.put(dx + i, formula::leaky_relu_gradient(at.get(x + i), at.get(dy + i), slope));
      });
}

void add(const float* a, const float* b, float* y, size_t n) {
  each_vector(
      n, [&](size_t i, auto at)
             __attribute__((always_inline)) { at.put(y + i, at.get(a + i) + at.get(b + i)); });
}

}  // namespace

void add_activations(ElementwiseKernels& kernels) {
  add_one<A::relu>(kernels);
  add_one<A::relu6>(kernels);
  add_one<A::leaky_relu>(kernels);
  add_one<A::elu>(kernels);
  add_one<A::selu>(kernels);
  add_one<A::gelu>(kernels);
  add_one<A::gelu_tanh>(kernels);
  add_one<A::silu>(kernels);
  add_one<A::sigmoid>(kernels);
  add_one<A::tanh>(kernels);
  add_one<A::softplus>(kernels);
  add_one<A::hardswish>(kernels);
  kernels.prelu = prelu;
  kernels.prelu_gradient = prelu_gradient;
  kernels.add = add;
}

}  // namespace dpt::DPT_ISA
