// Which tensors of a convolution operator are x, w and y.
#pragma once

#include "graph/attrs.h"
#include "graph/kernel.h"

namespace dpt {

// The x, w and y of y = convolution(x, w), whichever of the three an operator computes.
struct ConvolutionRoles {
  const TensorDesc *x, *w, *y;  // point into the query, which must outlive this object

  ConvolutionRoles(const KernelQuery& q, ConvolutionPass pass)
      : x(pass == ConvolutionPass::forward          ? &q.in[0]
          : pass == ConvolutionPass::input_gradient ? &q.out[0]
                                                    : &q.in[1]),
        w(pass == ConvolutionPass::weight_gradient ? &q.out[0] : &q.in[1]),
        y(pass == ConvolutionPass::forward ? &q.out[0] : &q.in[0]) {}
};

}  // namespace dpt
