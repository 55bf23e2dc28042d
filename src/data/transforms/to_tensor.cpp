#include "data/dataset.h"

namespace dpt::transforms {
namespace {

// Like torchvision's ToTensor for bytes: u8 0..255 -> f32 0..1. Floats are unchanged.
struct ToTensor {
  static constexpr Usage kUsage{"torchvision.transforms.ToTensor", "transforms: [to_tensor]"};
  static KeyTable<ToTensor> keys() { return {}; }
};

void apply(const std::any& /*settings*/, float* x, size_t count, int64_t /*channel*/, DType from) {
  if (from != DType::u8) return;
  for (size_t i = 0; i < count; ++i) x[i] /= 255;
}

std::string torch(const std::any& /*settings*/) {
  return "x = x.float() / 255 if x.dtype == torch.uint8 else x.float()\n";
}

}  // namespace

TransformType to_tensor() {
  TransformType t{registry_entry<ToTensor>(
      "to_tensor", "Converts bytes to floats between 0 and 1; leaves floats unchanged.")};
  t.apply = apply;
  t.first_of_bytes = true;
  t.torch = torch;
  return t;
}

}  // namespace dpt::transforms
