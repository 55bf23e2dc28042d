// The element-wise transforms of a list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "data/dataset.h"

namespace dpt {

// The registry entry of a choice. REQUIRES: it is one of transform_table().
inline const TransformType& type_of_transform(const Choice& c) {
  return static_cast<const TransformType&>(*c.what);
}

// Applies transforms one after another to x[count], elements of one channel. from: u8 if the
// elements were bytes just before, else f32. REQUIRES: no transform is random.
inline void apply_all(std::span<const Choice> transforms, float* x, size_t count, int64_t channel,
                      DType from) {
  for (const Choice& t : transforms) {
    type_of_transform(t).apply(t.settings, x, count, channel, from);
    from = DType::f32;
  }
}

}  // namespace dpt
