#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("upsample_nearest repeats elements, and takes torch's float32 for their places") {
  const Given x{f32({1, 1, 2, 2}), {1, 2, 3, 4}};
  CHECK(run_op("upsample_nearest", {x}, Resize{{1, 2, 4}}) ==
        std::vector<double>{1, 1, 2, 2, 3, 3, 4, 4});
  CHECK(run_op("upsample_nearest", {{f32({1, 1, 3}), {1, 2, 3}}}, Resize{{1, 1, 5}}) ==
        std::vector<double>{1, 1, 2, 2, 3});
  // By the scale, floor(i / 2.4), where the ratio of the extents, i * 4 / 9, is another position.
  CHECK(run_op("upsample_nearest", {{f32({1, 1, 4}), {1, 2, 3, 4}}},
               Resize{{1, 1, 9}, {0, 1, 2.4}}) == std::vector<double>{1, 1, 1, 2, 2, 3, 3, 3, 4});
}

TEST_CASE("upsample_nearest takes a factor that keeps the extent as it is, as PyTorch's forward") {
  CHECK(run_op("upsample_nearest", {{f32({1, 1, 3}), {1, 2, 3}}}, Resize{{1, 1, 3}, {0, 1, 1.2}}) ==
        std::vector<double>{1, 1, 2});
}

TEST_CASE("upsample_nearest takes the pixel at the center if it is exact") {
  const Given x{f32({1, 1, 3}), {1, 2, 3}};
  CHECK(run_op("upsample_nearest", {x}, Resize{{1, 1, 5}, {}, false, true}) ==
        std::vector<double>{1, 1, 2, 3, 3});
  // 20.5 * 2 / 41 is 1, and is rounded down to less unless it is fused with a difference.
  const auto y =
      run_op("upsample_nearest", {{f32({1, 1, 2}), {1, 2}}}, Resize{{1, 1, 41}, {}, false, true});
  CHECK(y[19] == 1);
  CHECK(y[20] == 2);
}

TEST_CASE("upsample_nearest's gradient sums over the copies") {
  CHECK(run_op("upsample_nearest_gradient", {{f32({1, 1, 4}), {1, 2, 3, 4}}}, Resize{{1, 1, 2}}) ==
        std::vector<double>{3, 7});
}

}  // namespace dpt
