#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("upsample_bilinear has torch's numbers") {
  const Given x{f64({1, 1, 2, 3}), {1, 2, 3, 4, 5, 6}};
  CHECK(close(run_op("upsample_bilinear", {x}, Resize{{1, 4, 6}, {0, 2, 2}}),
              {1.0,  1.25, 1.75, 2.25, 2.75, 3.0,  1.75, 2.0,  2.5,  3.0,  3.5,  3.75,
               3.25, 3.5,  4.0,  4.5,  5.0,  5.25, 4.0,  4.25, 4.75, 5.25, 5.75, 6.0}));
  CHECK(close(
      run_op("upsample_bilinear", {x}, Resize{{1, 3, 4}, {0, 0, 0}, true}),
      {1.0, 5.0 / 3, 7.0 / 3, 3.0, 2.5, 9.5 / 3, 11.5 / 3, 4.5, 4.0, 14.0 / 3, 16.0 / 3, 6.0}));
  CHECK(close(run_op("upsample_bilinear", {{f64({1, 1, 3}), {1, 3, 2}}}, Resize{{1, 1, 5}}),
              {1.0, 1.8, 3.0, 2.4, 2.0}));
}

TEST_CASE("upsample_bilinear's gradient gives each source its part") {
  CHECK(close(
      run_op("upsample_bilinear_gradient", {{f64({1, 1, 5}), {1, 2, 3, 4, 5}}}, Resize{{1, 1, 3}}),
      {2.2, 5.4, 7.4}));
}

TEST_CASE("upsample_bicubic has torch's numbers") {
  const Given x{f64({1, 1, 1, 4}), {1, 3, 2, 5}};
  CHECK(close(run_op("upsample_bicubic", {x}, Resize{{1, 1, 6}}),
              {0.8263888888888895, 2.09375, 2.978009259259261, 1.917824074074075, 3.40625,
               5.260416666666668}));
  CHECK(close(run_op("upsample_bicubic", {x}, Resize{{1, 1, 6}, {}, true}),
              {1, 2.332, 2.944, 1.936, 3.056, 5}));
}

TEST_CASE("upsample_bilinear refuses empty images") {
  CHECK(refusal("upsample_bilinear", {f32({1, 1, 0})}, Resize{{1, 1, 1}}) ==
        "upsample_bilinear: an empty image cannot be upsampled, [1, 1, 0] to [1, 1, 1]");
}

}  // namespace dpt
