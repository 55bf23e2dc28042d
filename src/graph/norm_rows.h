// The operators that normalize rows (operators/norms/row_norm.cpp): their names and their rows.
#pragma once

#include <string_view>

#include "graph/attrs.h"
#include "graph/formulas/norm_rows.h"

namespace dpt {

struct RowNormNames {
  std::string_view norm, input_gradient, weight_gradient;
  std::string_view backward;  // both gradients, for GPUs; empty: there is none
};
inline constexpr RowNormNames kRowNorms[] = {
    {"layer_norm", "layer_norm_input_gradient", "layer_norm_weight_gradient",
     "layer_norm_backward"},
    {"rms_norm", "rms_norm_input_gradient", "rms_norm_weight_gradient", ""},
    {"group_norm", "group_norm_input_gradient", "group_norm_weight_gradient",
     "group_norm_backward"}};

inline const RowNormNames& names_of(const RowNorm& s) {
  return kRowNorms[s.groups > 0 ? 2 : s.center ? 0 : 1];
}

// The shape of the weight and the bias.
inline Shape weight_shape(const RowNorm& s, const Shape& x) {
  return s.groups > 0 ? Shape{x[1]} : x.tail(x.rank() - s.dims);
}

inline formula::NormRows norm_rows(const RowNorm& s, const TensorDesc& x) {
  const int64_t weights = weight_shape(s, x.shape).elements();
  int64_t samples = 1, positions = 1;
  if (s.groups == 0) {
    for (int i = 0; i < x.shape.rank() - s.dims; ++i) samples *= x.shape[i];
    return {samples, 1, weights, 1, false};
  }
  if (x.shape.rank() > 2) positions = x.shape.tail(2).elements();
  return {x.shape[0], s.groups, weights / s.groups, positions,
          same_order(x.shape, x.layout, Layout::channels_last)};
}

}  // namespace dpt
