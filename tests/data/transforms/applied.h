// One transform by its name, with settings as a spec gives them.
#pragma once

#include "../folder.h"
#include "data/dataset.h"

namespace dpt {

inline const TransformType& transform_type(const std::string& name) {
  for (const TransformType& t : transform_table())
    if (t.name == name) return t;
  FAIL("no such transform");
  return transform_table()[0];
}

inline std::vector<float> applied(const std::string& name, const std::string& yaml,
                                  std::vector<float> x, int64_t channel = 0,
                                  DType from = DType::f32) {
  const TransformType& t = transform_type(name);
  t.apply(settings_of(t, yaml), x.data(), x.size(), channel, from);
  return x;
}

inline std::string torch_of(const std::string& name, const std::string& yaml) {
  const TransformType& t = transform_type(name);
  return t.torch(settings_of(t, yaml));
}

}  // namespace dpt
