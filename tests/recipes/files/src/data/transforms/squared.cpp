#include "data/dataset.h"

namespace dpt::transforms {
namespace {

struct Squared {
  static constexpr Usage kUsage{"", "transforms: [to_tensor, squared]"};
  static KeyTable<Squared> keys() { return {}; }
};

void apply(const std::any&, float* x, size_t count, int64_t /*channel*/, DType /*from*/) {
  for (size_t i = 0; i < count; ++i) x[i] *= x[i];
}

std::string torch(const std::any&) { return "x = x * x\n"; }

}  // namespace

TransformType squared() {
  TransformType t{registry_entry<Squared>("squared", "Squares every element.")};
  t.apply = apply;
  t.torch = torch;
  return t;
}

}  // namespace dpt::transforms
