#include <fmt/format.h>

#include "data/dataset.h"

namespace dpt::transforms {
namespace {

struct Scale {
  static constexpr Usage kUsage{"", "transforms: [to_tensor, {scale: {by: 2}}]"};

  double by = 0;
  static KeyTable<Scale> keys() { return KeyTable<Scale>().required("by", &Scale::by, "factor"); }
};

// In f32, as PyTorch computes with a tensor and a Python number.
void apply(const std::any& settings, float* x, size_t count, int64_t /*channel*/, DType /*from*/) {
  const auto by = static_cast<float>(std::any_cast<const Scale&>(settings).by);
  for (size_t i = 0; i < count; ++i) x[i] *= by;
}

std::string torch(const std::any& settings) {
  return fmt::format("x = x * {}\n", std::any_cast<const Scale&>(settings).by);
}

}  // namespace

TransformType scale() {
  TransformType t{registry_entry<Scale>("scale", "Multiplies every element by a number.")};
  t.apply = apply;
  t.torch = torch;
  return t;
}

}  // namespace dpt::transforms
