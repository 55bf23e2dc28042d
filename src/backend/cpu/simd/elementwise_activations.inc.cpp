// Activations and their gradients: the formulas of graph/formulas on vectors.
#include "backend/cpu/simd/elementwise.h"
#include "backend/cpu/simd/lanes_math.h"
#include "backend/cpu/simd/rounding.h"
#include "graph/formulas/activations.h"

namespace dpt::DPT_ISA {
namespace {

// The parameters of a formula as vectors.
struct Parameters {
  Lanes p[2];
  [[gnu::always_inline]] explicit Parameters(const float* s) : p{all(s[0]), all(s[1])} {}
};

template <class T>
DPT_SIMD Lanes as_stored(Lanes x) {
  if constexpr (sizeof(T) == 2) {
    return ToBf16{}(x);
  } else {
    return x;
  }
}

template <class F, class T>
void forward(const T* x, T* y, size_t n, const float* s) {
  const Parameters of(s);
  each_vector(
      n, [&](size_t i, auto at) __attribute__((always_inline)) {
        at.put(y + i, as_stored<T>(formula::value_of<F>(at.get(x + i), of.p)));
      });
}

template <class F, class T>
void backward(const T* x, const T* dy, T* dx, size_t n, const float* s) {
  const Parameters of(s);
  each_vector(
      n, [&](size_t i, auto at) __attribute__((always_inline)) {
        at.put(dx + i, as_stored<T>(formula::gradient_of<F>(at.get(x + i), at.get(dy + i), of.p)));
      });
}

template <class T, class... F>
void add_all(ActivationsOf<T>& kernels, formula::FormulaList<F...>) {
  ((kernels.activation[formula::kIndexOf<F>] = forward<F, T>), ...);
  ((kernels.activation_gradient[formula::kIndexOf<F>] = backward<F, T>), ...);
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

void multiply(const float* a, const float* b, float* y, size_t n) {
  each_vector(
      n, [&](size_t i, auto at)
             __attribute__((always_inline)) { at.put(y + i, at.get(a + i) * at.get(b + i)); });
}

void prelu_weight_gradient(const float* dy, const float* x, double* sums, size_t rows, size_t c) {
  constexpr size_t kPart = 64;  // rows whose sums are in float
  for (size_t first = 0; first < rows; first += kPart) {
    const size_t end = rows - first < kPart ? rows : first + kPart;
    each_vector(
        c, [&](size_t i, auto at) __attribute__((always_inline)) {
          Lanes sum = zero();
          for (size_t r = first; r < end; ++r) {
            const Lanes v = at.get(x + r * c + i), product = at.get(dy + r * c + i) * v;
            sum += select(v > Lanes(0), Lanes(0), product);
          }
          float each[kLanes];
          store(each, sum.v);
          for (size_t j = 0; j < kLanes && i + j < c; ++j)
            sums[i + j] += static_cast<double>(each[j]);
        });
  }
}

}  // namespace

void add_activations(ElementwiseKernels& kernels) {
  add_all<float>(kernels, formula::Activations{});
  add_all(kernels.bf16, formula::Activations{});
  kernels.prelu = prelu;
  kernels.prelu_gradient = prelu_gradient;
  kernels.prelu_weight_gradient = prelu_weight_gradient;
  kernels.add = add;
  kernels.multiply = multiply;
}

}  // namespace dpt::DPT_ISA
