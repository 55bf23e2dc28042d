#include <fmt/format.h>

#include "data/dataset.h"

namespace dpt::transforms {
namespace {

struct Shift {
  static constexpr Usage kUsage{"", "transforms: [to_tensor, {shift: {by: -0.5}}]"};

  double by = 0;
  static KeyTable<Shift> keys() {
    return KeyTable<Shift>().required("by", &Shift::by, "number to add");
  }
};

// In f32, as PyTorch computes with a tensor and a Python number.
void apply(const std::any& settings, float* x, size_t count, int64_t /*channel*/, DType /*from*/) {
  const auto by = static_cast<float>(std::any_cast<const Shift&>(settings).by);
  for (size_t i = 0; i < count; ++i) x[i] += by;
}

std::string torch(const std::any& settings) {
  return fmt::format("x = x + {}\n", std::any_cast<const Shift&>(settings).by);
}

}  // namespace

TransformType shift() {
  TransformType t{registry_entry<Shift>("shift", "Adds a number to every element.")};
  t.apply = apply;
  t.torch = torch;
  return t;
}

}  // namespace dpt::transforms
