#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("masked multiplies by the mask and its scale, the mask as bytes or as numbers") {
  for (DType t : {DType::u8, DType::f32})
    CHECK(run_op("masked", {{f32({1, 3}), {1, 2, 3}}, {{t, {1, 3}}, {1, 0, 1}}},
                 Masked{.scale = 2}) == std::vector<double>{2, 0, 6});
}

TEST_CASE("masked refuses a mask of another shape") {
  CHECK(refusal("masked", {f32({1, 3}), f32({1, 4})}) ==
        "masked: mask f32[1, 4] does not fit f32[1, 3]");
}

TEST_CASE("masked_channels has one number for each channel") {
  const Given x{f32({1, 2, 3}), {1, 2, 3, 4, 5, 6}}, mask{f32({1, 2}), {0, 1}};
  CHECK(run_op("masked_channels", {x, mask}, Masked{.scale = 2}) ==
        std::vector<double>{0, 0, 0, 8, 10, 12});
  CHECK(refusal("masked_channels", {f32({1, 2, 3}), f32({1, 3})}) ==
        "masked_channels: mask f32[1, 3] does not fit f32[1, 2, 3]");
}

}  // namespace dpt
