// Helpers for losses with class targets. The output is [N, ...] and holds a score for each class
// along dimension `dim`. The targets are class indices, i32, of the output's shape without `dim`.
#pragma once

#include <algorithm>

#include "graph/operators/losses/loss_support.h"

namespace dpt::operators {

inline Shape positions_of(const Shape& output, int dim) {
  std::vector<int64_t> extents(output.extents().begin(), output.extents().end());
  extents.erase(extents.begin() + dim);
  return Shape(extents);
}

inline void need_classes(std::string_view op, const TensorDesc& output, int dim) {
  need_real(op, output);
  if (dim < 1 || dim >= output.shape.rank())
    fail(Fault::spec, "{}: output {} has no dimension of classes; it must be [N, C] or [N, C, ...]",
         op, str(output));
}

inline void need_class_weight(std::string_view op, std::span<const TensorDesc> in, int dim) {
  if (in.size() > 3 && in[3].shape != Shape{in[0].shape[dim]})
    fail(Fault::spec, "{}: weight {} does not fit the {} classes of output {}", op,
         in[3].shape.str(), in[0].shape[dim], str(in[0]));
}

// One position of an output: the score of class c is element first + c * step.
struct Position {
  size_t first, step;
  int64_t classes, target;
};

// Calls f for each position whose target is not `ignore`. Throws Error{data} if a target is out of
// range.
template <class F>
void for_each_position(const TensorView& output, const TensorView& target, int dim, int64_t ignore,
                       F f) {
  const Along a = along(output.desc.shape, dim);
  const int64_t of_sample = a.outer / std::max<int64_t>(1, output.desc.shape[0]);
  const auto classes = target.as<const int32_t>();
  for (int64_t n = 0; n < a.outer; ++n)
    for (int64_t i = 0; i < a.inner; ++i) {
      const int64_t t = classes[static_cast<size_t>(n * a.inner + i)];
      if (t == ignore) continue;
      if (t < 0 || t >= a.extent)
        fail(Fault::data, "target {} of sample {} in its batch is not in [0, {})", t, n / of_sample,
             a.extent);
      f(Position{.first = static_cast<size_t>(n * a.extent * a.inner + i),
                 .step = static_cast<size_t>(a.inner),
                 .classes = a.extent,
                 .target = t});
    }
}

}  // namespace dpt::operators
