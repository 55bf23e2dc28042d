#include "images.h"

namespace dpt {

TEST_CASE("to_tensor divides bytes by 255 in f32 and leaves floats") {
  for (int v = 0; v < 256; ++v) {
    const auto x = static_cast<float>(v);
    CHECK(applied("to_tensor", "", {x}, 0, DType::u8) == std::vector<float>{x / 255.0F});
  }
  CHECK(applied("to_tensor", "", {3.5F}) == std::vector<float>{3.5F});
  CHECK(has(torch_of("to_tensor", ""), "x.float() / 255 if x.dtype == torch.uint8"));
}

TEST_CASE("to_tensor stands before other transforms of bytes") {
  const std::vector<Choice> list = {transform_of("normalize", "{mean: 0.5, std: 0.5}"),
                                    transform_of("to_tensor", "")};
  try {
    const BatchLoader loader(counting_images(1, {1, 2, 3}), list, {});
    FAIL("not refused");
  } catch (const Error& e) {
    CHECK(has(e.what(), "does nothing after 'normalize'; list 'to_tensor' before 'normalize'"));
  }
  const std::vector<Choice> twice = {list[1], list[1], list[0]};
  CHECK(BatchLoader(counting_images(1, {1, 2, 3}), twice, {}).input().shape == Shape{1, 2, 3});
}

}  // namespace dpt
