// Moves elements: layouts, slices, padding, concatenation, rows of an embedding (its gradient:
// uses.h).
#pragma once

#include "backend/cuda/kernels/number.h"
#include "backend/cuda/kernels/own_kernel.h"
#include "backend/cuda/kernels/step_state.h"

namespace dpt::cuda {

inline constexpr int kMostExtents = 6;

// A dense tensor, and its position in another one. The element at index i in memory has the
// coordinate i / step[d] % extent[d] in dimension d. In the other tensor that coordinate is smaller
// by before[d], and elements are other_step[d] apart.
struct Box {
  int rank;
  int64_t extent[kMostExtents], step[kMostExtents];
  int64_t before[kMostExtents], other_extent[kMostExtents], other_step[kMostExtents];
  int64_t other_elements;
  // Index in the other tensor of the element at `position`, or -1 if it lies outside.
  DPT_HOST_DEVICE int64_t other(int64_t position) const {
    int64_t at = 0;
    for (int d = 0; d < rank; ++d) {
      const int64_t c = position / step[d] % extent[d] - before[d];
      if (c < 0 || c >= other_extent[d]) return -1;
      at += c * other_step[d];
    }
    return at;
  }
};

// y = the element of x at the same coordinates, or `value` outside of x.
template <class T>
struct Take {
  Box box;  // of y; the other tensor is x
  const T* x;
  T* y;
  T value;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(x, box.other_elements);
    v.writes(y, count);
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t from = box.other(i);
    y[i] = from < 0 ? value : x[from];
  }
};

// Copies each element of x into y, which contains x.
template <class T>
struct Give {
  Box box;  // of x; the other tensor is y
  const T* x;
  T* y;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(x, count);
    v.reads(y, box.other_elements);  // the rest of y keeps its values
    v.writes(y, box.other_elements);
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const { y[box.other(i)] = x[i]; }
};

// y[i, e] = w[index[i], e]. For an index out of range the result is 0 and state->bad is set.
template <class T>
struct TakeRows {
  const int32_t* index;
  const T* w;
  T* y;
  int64_t width, rows;
  StepState* state;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(index, count / width);
    v.reads(w, rows * width);
    v.writes(y, count);
    v.reads(state, 1);
    v.writes(state, 1);
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    const int32_t row = index[i / width];
    if (row >= 0 && row < rows) {
      y[i] = w[row * width + i % width];
    } else {
      put(y[i], 0.0F);
      state->bad = 1;  // all threads write the same value
    }
  }
};

using CopyKernels = KernelList<Take<uint32_t>, Take<uint16_t>, Give<uint32_t>, Give<uint16_t>,
                               TakeRows<float>, TakeRows<Bf16>, TakeRows<F16>>;

}  // namespace dpt::cuda
