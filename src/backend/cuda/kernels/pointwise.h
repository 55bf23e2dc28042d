// Elementwise kernels: activations and their gradients, conversions, addition, masks, dropout. They
// use the formulas of graph/ in float; T is the type in memory.
#pragma once

#include "backend/cuda/kernels/number.h"
#include "backend/cuda/kernels/own_kernel.h"
#include "backend/cuda/kernels/step_state.h"
#include "graph/formulas/activations.h"
#include "graph/formulas/glu.h"
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

// A formula of the table of activations (graph/formulas/activations.h) with its parameters.
template <class F>
struct ActivationOf {
  float p[2] = {};
  DPT_HOST_DEVICE float operator()(float x) const { return formula::value_of<F>(x, p); }
  DPT_HOST_DEVICE float operator()(float x, float dy) const {
    return formula::gradient_of<F>(x, dy, p);
  }
};
using Relu = ActivationOf<formula::Relu>;

struct Sum2 {
  DPT_HOST_DEVICE float operator()(float a, float b) const { return a + b; }
};
struct Product2 {
  DPT_HOST_DEVICE float operator()(float a, float b) const { return a * b; }
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

// Dropout of channels: `together` adjacent elements use the word of one, that with the number of
// their channel.
template <class T>
struct DropChannels {
  const T* x;
  T* y;
  const StepState* state;
  int64_t width, together;  // elements of a sample, and of a channel
  uint64_t layer, keep_below;
  float scale;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(state, 1);
    v.reads(x, count);
    v.writes(y, count);
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    const uint32_t word =
        philox::element_word(philox::layer_key(state->seed, layer), state->step,
                             static_cast<uint64_t>(state->first_sample + i / width),
                             static_cast<uint64_t>(i % width / together));
    put(y[i], word < keep_below ? number(x[i]) * scale : 0.0F);
  }
};

// y = x * (mask * scale) with a mask for each `together` adjacent elements.
template <class T, class Mask>
struct MaskChannels {
  const T* x;
  const Mask* mask;
  T* y;
  int64_t together;
  float scale;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(x, count);
    v.reads(mask, count / together);
    v.writes(y, count);
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    put(y[i], number(x[i]) * (number(mask[i / together]) * scale));
  }
};

// glu. Each index handles one element of y. x consists of pairs of `half` adjacent elements.
template <class T>
struct Gate {
  const T* x;
  T* y;
  int64_t half;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(x, 2 * count);
    v.writes(y, count);
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t a = i / half * 2 * half + i % half;
    put(y[i], formula::glu(number(x[a]), number(x[a + half])));
  }
};
template <class T>
struct GateGradient {
  const T *dy, *x;
  T* dx;
  int64_t half;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(dy, count);
    v.reads(x, 2 * count);
    v.writes(dx, 2 * count);
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t a = i / half * 2 * half + i % half;
    const float up = number(dy[i]), gate = number(x[a + half]);
    put(dx[a], formula::glu_gradient_a(gate, up));
    put(dx[a + half], formula::glu_gradient_b(number(x[a]), gate, up));
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

namespace detail {
template <class T, class... F>
KernelList<Map<ActivationOf<F>, T>..., Map2<ActivationOf<F>, T>...> kernels_of(
    formula::FormulaList<F...>);
}
template <class T>
using ActivationKernelsOf = decltype(detail::kernels_of<T>(formula::Activations{}));
using ActivationKernels = ActivationKernelsOf<float>;
using Bf16ActivationKernels = ActivationKernelsOf<Bf16>;
using F16ActivationKernels = ActivationKernelsOf<F16>;

using PointwiseKernels =
    KernelList<Map2<Sum2, float>, Map2<Sum2, Bf16>, Map2<Sum2, F16>, Map2<Product2, float>,
               Map2<Product2, Bf16>, Map2<Product2, F16>, Gate<float>, Gate<Bf16>, Gate<F16>,
               GateGradient<float>, GateGradient<Bf16>, GateGradient<F16>, DropChannels<float>,
               DropChannels<Bf16>, DropChannels<F16>, MaskChannels<float, float>,
               MaskChannels<Bf16, Bf16>, MaskChannels<F16, F16>, ScaleBy<float>, ScaleBy<Bf16>,
               ScaleBy<F16>, Masks<float, uint8_t>, Masks<float, float>, Masks<Bf16, uint8_t>,
               Masks<Bf16, Bf16>, Masks<F16, uint8_t>, Masks<F16, F16>, Drop<float>, Drop<Bf16>,
               Drop<F16>, ParametricRelu<float>, ParametricRelu<Bf16>, ParametricRelu<F16>,
               ParametricReluGradient<float>, ParametricReluGradient<Bf16>,
               ParametricReluGradient<F16>, Map<RoundToHalf, float>, Convert<float, Bf16>,
               Convert<float, F16>, Convert<Bf16, float>, Convert<F16, float>, Convert<Bf16, F16>,
               Convert<F16, Bf16>, AddRepeated<float>, AddRepeated<Bf16>, AddRepeated<F16>>;

}  // namespace dpt::cuda
