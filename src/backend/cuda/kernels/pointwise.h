// Elementwise kernels: activations and their gradients, conversions, addition, masks, dropout. They
// use the formulas of graph/ in float; T is the type in memory.
#pragma once

#include "backend/cuda/kernels/number.h"
#include "backend/cuda/kernels/own_kernel.h"
#include "backend/cuda/kernels/step_state.h"
#include "graph/formulas/activation.h"
#include "graph/formulas/philox.h"

namespace dpt::cuda {

// y = f(x).
template <class F, class T>
struct Map {
  F f;
  const T* x;
  T* y;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(x, count);
    v.writes(y, count);
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const { put(y[i], f(number(x[i]))); }
};

// y = f(a, b); for the gradient of an activation, dx = f(x or y, dy).
template <class F, class T>
struct Map2 {
  F f;
  const T *a, *b;
  T* y;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(a, count);
    v.reads(b, count);
    v.writes(y, count);
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const { put(y[i], f(number(a[i]), number(b[i]))); }
};

// y[i] = x[i] + w[i % period].
template <class T>
struct AddRepeated {
  const T *x, *w;
  T* y;
  int64_t period;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(x, count);
    v.reads(w, period);
    v.writes(y, count);
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    put(y[i], number(x[i]) + number(w[i % period]));
  }
};

struct Relu {
  DPT_HOST_DEVICE float operator()(float x) const { return formula::relu(x); }
  DPT_HOST_DEVICE float operator()(float y, float dy) const {
    return formula::relu_gradient(y, dy);
  }
};
struct Relu6 {
  DPT_HOST_DEVICE float operator()(float x) const { return formula::relu6(x); }
  DPT_HOST_DEVICE float operator()(float y, float dy) const {
    return formula::relu6_gradient(y, dy);
  }
};
struct LeakyReluOf {
  float slope;
  DPT_HOST_DEVICE float operator()(float x) const { return formula::leaky_relu(x, slope); }
  DPT_HOST_DEVICE float operator()(float x, float dy) const {
    return formula::leaky_relu_gradient(x, dy, slope);
  }
};
struct EluOf {
  float alpha;
  DPT_HOST_DEVICE float operator()(float x) const { return formula::elu(x, alpha); }
  DPT_HOST_DEVICE float operator()(float x, float dy) const {
    return formula::elu_gradient(x, dy, alpha);
  }
};
struct Selu {
  DPT_HOST_DEVICE float operator()(float x) const { return formula::selu(x); }
  DPT_HOST_DEVICE float operator()(float x, float dy) const {
    return formula::selu_gradient(x, dy);
  }
};
struct GeluOf {
  bool tanh;
  DPT_HOST_DEVICE float operator()(float x) const {
    return tanh ? formula::gelu_tanh(x) : formula::gelu(x);
  }
  DPT_HOST_DEVICE float operator()(float x, float dy) const {
    return tanh ? formula::gelu_tanh_gradient(x, dy) : formula::gelu_gradient(x, dy);
  }
};
struct Silu {
  DPT_HOST_DEVICE float operator()(float x) const { return formula::silu(x); }
  DPT_HOST_DEVICE float operator()(float x, float dy) const {
    return formula::silu_gradient(x, dy);
  }
};
struct Sigmoid {
  DPT_HOST_DEVICE float operator()(float x) const { return formula::sigmoid(x); }
  DPT_HOST_DEVICE float operator()(float y, float dy) const {
    return formula::sigmoid_gradient(y, dy);
  }
};
struct Tanh {
  DPT_HOST_DEVICE float operator()(float x) const { return formula::tanh(x); }
  DPT_HOST_DEVICE float operator()(float y, float dy) const {
    return formula::tanh_gradient(y, dy);
  }
};
struct SoftplusOf {
  float beta, threshold;
  DPT_HOST_DEVICE float operator()(float x) const { return formula::softplus(x, beta, threshold); }
  DPT_HOST_DEVICE float operator()(float x, float dy) const {
    return formula::softplus_gradient(x, dy, beta, threshold);
  }
};
struct Hardswish {
  DPT_HOST_DEVICE float operator()(float x) const { return formula::hardswish(x); }
  DPT_HOST_DEVICE float operator()(float x, float dy) const {
    return formula::hardswish_gradient(x, dy);
  }
};

struct Sum2 {
  DPT_HOST_DEVICE float operator()(float a, float b) const { return a + b; }
};
struct RoundToHalf {
  bool bf16;
  DPT_HOST_DEVICE float operator()(float x) const {
    return bf16 ? from_bf16(to_bf16(x)) : from_f16(to_f16(x));
  }
};

template <class T>
struct ScaleBy {
  const T* x;
  const float* scale;
  T* y;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(x, count);
    v.reads(scale, 1);
    v.writes(y, count);
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const { put(y[i], number(x[i]) * *scale); }
};

template <class From, class To>
struct Convert {
  const From* x;
  To* y;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(x, count);
    v.writes(y, count);
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const { put(y[i], number(x[i])); }
};

// y = x * (mask * scale). Masks are bytes or of the type of x.
template <class T, class Mask>
struct Masks {
  const T* x;
  const Mask* mask;
  T* y;
  float scale;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(x, count);
    v.reads(mask, count);
    v.writes(y, count);
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    put(y[i], number(x[i]) * (number(mask[i]) * scale));
  }
};

// Dropout. Each index handles one Philox block, whose four words belong to four elements (Note
// [dropout's words] in graph/formulas/philox.h). Count: rows * blocks_of(width).
template <class T>
struct Drop {
  const T* x;
  T* y;
  const StepState* state;
  int64_t rows, width;  // samples, and elements of a sample
  uint64_t layer, keep_below;
  float scale;
  DPT_HOST_DEVICE static int64_t blocks_of(int64_t width) { return (width + 63) / 64 * 16; }
  template <class Visitor>
  void touches(Visitor& v, int64_t) const {
    v.reads(state, 1);
    v.reads(x, rows * width);
    v.writes(y, rows * width);
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t blocks = blocks_of(width), row = i / blocks, block = i % blocks;
    const philox::Words w = philox::block(
        philox::sample_counter(state->step, static_cast<uint64_t>(state->first_sample + row),
                               static_cast<uint32_t>(block)),
        philox::layer_key(state->seed, layer));
    for (int k = 0; k < 4; ++k) {
      const int64_t e = block / 16 * 64 + k * 16 + block % 16;
      if (e >= width) return;
      const float v = number(x[row * width + e]);
      put(y[row * width + e], w.w[k] < keep_below ? v * scale : 0.0F);
    }
  }
};

// prelu with one slope for all elements, or one for each of `slopes` channels, which have
// `together` adjacent elements each.
template <class T>
struct ParametricRelu {
  const T *x, *w;
  T* y;
  int64_t slopes, together;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(x, count);
    v.reads(w, slopes);
    v.writes(y, count);
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    put(y[i], formula::leaky_relu(number(x[i]), number(w[i / together % slopes])));
  }
};
template <class T>
struct ParametricReluGradient {
  const T *dy, *x, *w;
  T* dx;
  int64_t slopes, together;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(dy, count);
    v.reads(x, count);
    v.reads(w, slopes);
    v.writes(dx, count);
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    put(dx[i], formula::leaky_relu_gradient(number(x[i]), number(dy[i]),
                                            number(w[i / together % slopes])));
  }
};

template <class T>
using ActivationKernelsOf =
    KernelList<Map<Relu, T>, Map2<Relu, T>, Map<Relu6, T>, Map2<Relu6, T>, Map<LeakyReluOf, T>,
               Map2<LeakyReluOf, T>, Map<EluOf, T>, Map2<EluOf, T>, Map<Selu, T>, Map2<Selu, T>,
               Map<GeluOf, T>, Map2<GeluOf, T>, Map<Silu, T>, Map2<Silu, T>, Map<Sigmoid, T>,
               Map2<Sigmoid, T>, Map<Tanh, T>, Map2<Tanh, T>, Map<SoftplusOf, T>,
               Map2<SoftplusOf, T>, Map<Hardswish, T>, Map2<Hardswish, T>>;
using ActivationKernels = ActivationKernelsOf<float>;
using Bf16ActivationKernels = ActivationKernelsOf<Bf16>;
using F16ActivationKernels = ActivationKernelsOf<F16>;

using PointwiseKernels =
    KernelList<Map2<Sum2, float>, Map2<Sum2, Bf16>, Map2<Sum2, F16>, ScaleBy<float>, ScaleBy<Bf16>,
               ScaleBy<F16>, Masks<float, uint8_t>, Masks<float, float>, Masks<Bf16, uint8_t>,
               Masks<Bf16, Bf16>, Masks<F16, uint8_t>, Masks<F16, F16>, Drop<float>, Drop<Bf16>,
               Drop<F16>, ParametricRelu<float>, ParametricRelu<Bf16>, ParametricRelu<F16>,
               ParametricReluGradient<float>, ParametricReluGradient<Bf16>,
               ParametricReluGradient<F16>, Map<RoundToHalf, float>, Convert<float, Bf16>,
               Convert<float, F16>, Convert<Bf16, float>, Convert<F16, float>, Convert<Bf16, F16>,
               Convert<F16, Bf16>, AddRepeated<float>, AddRepeated<Bf16>, AddRepeated<F16>>;

}  // namespace dpt::cuda
