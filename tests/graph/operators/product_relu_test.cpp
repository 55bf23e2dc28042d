#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("linear_relu leaves out what is below 0 after the bias") {
  CHECK(run_op("linear_relu", {{f32({1, 2}), {1, 2}},
                               {f32({3, 2}), {3, 4, -5, -6, 7, 8}},
                               {f32({3}), {0, 1, -24}}}) == std::vector<double>{11, 0, 0});
  CHECK(run_op("linear_relu", {{f32({1, 2}), {1, 2}}, {f32({2, 2}), {3, 4, -5, -6}}}) ==
        std::vector<double>{11, 0});
}

TEST_CASE("convolution_relu leaves out what is below 0 after the bias") {
  const Convolution pairs{.window = {.kernel = {1, 2}}};
  const Numbers x{f32({1, 1, 3}), {1, 2, -4}}, w{f32({2, 1, 2}), {1, 1, -1, 1}};
  CHECK(run_op("convolution_relu", {x, w}, pairs) == std::vector<double>{3, 0, 1, 0});
  CHECK(run_op("convolution_relu", {x, w, {f32({2}), {2.5, -0.5}}}, pairs) ==
        std::vector<double>{5.5, 0.5, 0.5, 0});
}

TEST_CASE("a product with relu names what does not fit") {
  CHECK(refusal("linear_relu", {f32({32, 400}), f32({10, 784})}) ==
        "linear: input [32, 400] does not fit weight [10, 784]");
}

}  // namespace dpt
