// What layers that normalize rows share: layer_norm, rms_norm, group_norm and instance_norm.
#pragma once

#include <string_view>
#include <vector>

#include "base/fail.h"
#include "formats/python_call.h"
#include "graph/builder.h"
#include "graph/norm_rows.h"
#include "spec/keys.h"

namespace dpt::layers {

// Adds the operator, with a learned weight and bias for each channel, or element of a row.
inline ValueId row_norm(GraphBuilder& g, ValueId x, const RowNorm& norm, bool weight, bool bias) {
  const Shape shape = weight_shape(norm, g.shape(x));
  std::vector<ValueId> in = {x};
  if (weight) in.push_back(g.parameter("weight", shape, {.a = 1}));
  if (weight && bias) in.push_back(g.parameter("bias", shape, {.a = 0}));
  return g.apply(names_of(norm).norm, in, norm);
}

// The last dimensions, which layer_norm and rms_norm normalize.
struct LastDimensions {
  std::vector<int64_t> normalized_shape;  // empty: the last dimension

  template <class L>
  static KeyTable<L> keys_of() {
    return KeyTable<L>().optional(
        "normalized_shape", &L::normalized_shape,
        "sizes of the last dimensions, which are normalized together; by default the last one",
        kSize);
  }

  // Throws Error{spec} if x has no such dimensions.
  Shape extents(std::string_view layer, const Shape& x) const {
    if (x.rank() < 2) fail(Fault::spec, "{} takes [N, ..., features], not {}", layer, x.str());
    if (normalized_shape.empty()) return x.tail(x.rank() - 1);
    const Shape given{std::span<const int64_t>(normalized_shape)};
    if (given.rank() >= x.rank() || x.tail(x.rank() - given.rank()) != given)
      fail(Fault::spec, "{}: normalized_shape {} does not match the last dimensions of {}", layer,
           given.str(), x.str());
    return given;
  }

  PythonCall torch_call(std::string_view module, const Shape& last) const {
    PythonCall call{std::string(module)};
    if (last.rank() == 1)
      call.arg(last[0]);
    else
      call.arg(std::vector<int64_t>(last.extents().begin(), last.extents().end()));
    return call;
  }
};

}  // namespace dpt::layers
