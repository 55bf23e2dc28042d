// Helpers of softmax and log_softmax: the shape rule, and a loop over the lines along one dimension
// that are normalized together.
#pragma once

#include "graph/operators/support.h"

namespace dpt::operators {

inline std::vector<TensorDesc> infer_softmax(std::string_view op, std::span<const TensorDesc> in,
                                             const Softmax& attrs) {
  need_real(op, in[0]);
  need_dim(op, in[0], attrs.dim);
  for (const TensorDesc& d : in) require(d == in[0], "a softmax and its gradient have one shape");
  return {in[0]};
}

// Calls f(extent, at) for each line; at(i) is the offset of its element i.
template <class F>
void for_each_line(const Shape& s, int dim, F f) {
  const Along a = along(s, dim);
  for (int64_t o = 0; o < a.outer; ++o)
    for (int64_t i = 0; i < a.inner; ++i)
      f(a.extent, [&](int64_t e) { return static_cast<size_t>((o * a.extent + e) * a.inner + i); });
}

}  // namespace dpt::operators
