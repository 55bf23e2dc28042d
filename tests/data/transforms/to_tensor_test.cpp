#include "applied.h"

namespace dpt {

TEST_CASE("to_tensor divides bytes by 255 in f32 and leaves floats") {
  for (int v = 0; v < 256; ++v) {
    const auto x = static_cast<float>(v);
    CHECK(applied("to_tensor", "", {x}, 0, DType::u8) == std::vector<float>{x / 255.0F});
  }
  CHECK(applied("to_tensor", "", {3.5F}) == std::vector<float>{3.5F});
  CHECK(has(torch_of("to_tensor", ""), "x.float() / 255 if x.dtype == torch.uint8"));
}

}  // namespace dpt
