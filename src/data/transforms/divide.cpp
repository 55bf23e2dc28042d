#include <fmt/format.h>

#include "data/dataset.h"

namespace dpt::transforms {
namespace {

struct Divide {
  static constexpr Usage kUsage{"", "transforms: [{divide: {by: 255}}]"};

  double by = 0;
  static KeyTable<Divide> keys() {
    return KeyTable<Divide>().required(
        "by", &Divide::by, "divisor", {"must not be zero", [](const double& v) { return v != 0; }});
  }
};

// In f32, as PyTorch computes with a tensor and a Python number.
void apply(const std::any& settings, float* x, size_t count, int64_t /*channel*/, DType /*from*/) {
  const auto by = static_cast<float>(std::any_cast<const Divide&>(settings).by);
  for (size_t i = 0; i < count; ++i) x[i] /= by;
}

std::string torch(const std::any& settings) {
  return fmt::format("x = x / {}\n", std::any_cast<const Divide&>(settings).by);
}

}  // namespace

TransformType divide() {
  TransformType t{registry_entry<Divide>("divide", "Divides every element by a number.")};
  t.apply = apply;
  t.torch = torch;
  return t;
}

}  // namespace dpt::transforms
