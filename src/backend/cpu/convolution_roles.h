// Which tensors of a convolution operator are x, w and y.
#pragma once

#include "graph/kernel.h"

namespace dpt {

// The x, w and y of y = convolution(x, w), and which of the three the operator computes.
struct ConvolutionRoles {
  enum class Made { y, x, w } made;
  const TensorDesc *x, *w, *y;  // point into the query, which must outlive this object

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
