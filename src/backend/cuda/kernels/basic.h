// Kernels that implement no operator.
#pragma once

#include "backend/cuda/kernels/block.h"
#include "backend/cuda/kernels/own_kernel.h"

namespace dpt::cuda {

// y [count] = value.
template <class T>
struct Fill {
  T* y;
  T value;
  DPT_HOST_DEVICE void operator()(int64_t i) const { y[i] = value; }
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.writes(y, count);
  }
};

// sums [rows] = the sum of each row of x [rows, columns], in double. A block computes one row in a
// fixed order: each thread adds every 256th element, then a binary tree combines the threads.
struct SumRows {
  static constexpr int kThreads = 256;
  struct Shared {
    double sum[kThreads];
  };
  const float* x;
  double* sums;
  int64_t columns;
  template <class Block>
  DPT_HOST_DEVICE void operator()(Block& block) const {
    const float* const row = x + block.index() * columns;
    block.phase([&](int t, Shared& s) {
      double sum = 0;
      for (int64_t i = t; i < columns; i += kThreads) sum += static_cast<double>(row[i]);
      s.sum[t] = sum;
    });
    for (int half = kThreads / 2; half > 0; half /= 2)
      block.phase([&](int t, Shared& s) {
        if (t < half) s.sum[t] += s.sum[t + half];
      });
    block.phase([&](int t, Shared& s) {
      if (t == 0) sums[block.index()] = s.sum[0];
    });
  }
  template <class Visitor>
  void touches(Visitor& v, int64_t rows) const {
    v.reads(x, rows * columns), v.writes(sums, rows);
  }
};

using BasicKernels = KernelList<Fill<float>, SumRows>;

}  // namespace dpt::cuda
