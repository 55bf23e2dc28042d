// What each operator of a convolution has where.
#pragma once

#include "graph/kernel.h"

namespace dpt {

// x, w and y of y = convolution(x, w), whichever of the three the operator makes.
struct ConvolutionRoles {
  enum class Made { y, x, w } made;
  const TensorDesc *x, *w, *y;  // of the query, which outlives it

  explicit ConvolutionRoles(const KernelQuery& q) {
    if (q.op == "convolution") {
      made = Made::y;
      x = &q.in[0], w = &q.in[1], y = &q.out[0];
    } else if (q.op == "convolution_transpose") {
      made = Made::x;
      x = &q.out[0], w = &q.in[1], y = &q.in[0];
    } else {
      made = Made::w;
      x = &q.in[1], w = &q.out[0], y = &q.in[0];
    }
  }
};

}  // namespace dpt
