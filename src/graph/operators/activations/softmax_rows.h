// Helpers of softmax and log_softmax: the shape rule, and a loop over the lines along one dimension
// that are normalized together.
#pragma once

#include "graph/operators/support.h"

namespace dpt::operators {

inline std::vector<TensorDesc> infer_softmax(std::string_view op, std::span<const TensorDesc> in,
                                             const std::any& attrs) {
  need_real(op, in[0]);
  need_dim(op, in[0], settings<Softmax>(attrs).dim);
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

inline std::vector<Sample> softmax_samples(std::string_view op, size_t inputs,
                                           Sample::Range first = {-5, 5}) {
  std::vector<Sample> out;
  const auto add = [&](Shape s, int dim) {
    std::vector<Sample::Range> ranges(inputs, Sample::Range{});
    ranges[0] = first;
    out.push_back({{op, std::vector(inputs, f32(s)), {f32(s)}, Softmax{dim}}, ranges});
  };
  add({3, 5}, 1);
  add({2, 1}, 1);
  add({5, 10}, 1);
  add({3, 37}, 1);
  add({2, 3, 4}, 1);
  add({2, 3, 17}, 2);
  return out;
}

}  // namespace dpt::operators
