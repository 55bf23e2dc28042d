#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("convolution sums a window of all channels, and adds the bias") {
  const Given x{f32({1, 1, 3, 3}), {1, 2, 3, 4, 5, 6, 7, 8, 9}};
  const Given w{f32({1, 1, 2, 2}), {1, 10, 100, 1000}}, b{f32({1}), {0.5}};
  CHECK(run_op("convolution", {x, w, b}, Convolution{{.kernel = {1, 2, 2}}}) ==
        std::vector<double>{5421.5, 6532.5, 8754.5, 9865.5});
  const Window padded{
      .kernel = {1, 2, 2}, .stride = {1, 2, 2}, .before = {0, 1, 1}, .behind = {0, 0, 0}};
  CHECK(run_op("convolution", {x, w}, Convolution{padded}) ==
        std::vector<double>{1000, 3200, 7040, 9865});
}

TEST_CASE("groups see their own channels only") {
  const Given x{f32({1, 2, 2}), {1, 2, 3, 4}}, w{f32({2, 1, 1}), {10, 100}};
  CHECK(run_op("convolution", {x, w}, Convolution{{}, 2}) == std::vector<double>{10, 20, 300, 400});
}

TEST_CASE("convolution_transpose lays a window around each element") {
  const Given x{f32({1, 1, 1, 2}), {1, 2}}, w{f32({1, 1, 1, 2}), {1, 10}};
  const Window wide{.kernel = {1, 1, 2}, .stride = {1, 1, 2}};
  CHECK(run_op("convolution_transpose", {x, w}, Convolution{wide}) ==
        std::vector<double>{1, 10, 2, 20});
  CHECK(run_op("convolution_transpose", {x, w, {f32({1}), {0.5}}},
               Convolution{wide, 1, {0, 0, 1}}) == std::vector<double>{1.5, 10.5, 2.5, 20.5, 0.5});
}

TEST_CASE("gradients of a convolution's weight and bias are sums over samples and places") {
  const Given dy{f32({2, 1, 2}), {1, 2, 3, 4}}, x{f32({2, 1, 3}), {1, 2, 3, 4, 5, 6}};
  CHECK(run_op("convolution_weight_gradient", {dy, x}, Convolution{{.kernel = {1, 1, 2}}}) ==
        std::vector<double>{1 * 1 + 2 * 2 + 3 * 4 + 4 * 5, 1 * 2 + 2 * 3 + 3 * 5 + 4 * 6});
  CHECK(run_op("sum_channels", {{f32({2, 2, 2}), {1, 2, 3, 4, 5, 6, 7, 8}}}) ==
        std::vector<double>{14, 22});
}

TEST_CASE("convolution names what does not fit") {
  CHECK(refusal("convolution", {f32({8, 3, 5, 5}), f32({4, 2, 3, 3})},
                Convolution{{.kernel = {1, 3, 3}}}) ==
        "convolution: input [8, 3, 5, 5] does not fit weight [4, 2, 3, 3] in 1 group");
  CHECK(refusal("convolution", {f32({8, 2, 5, 5}), f32({4, 2, 3, 3}), f32({2})},
                Convolution{{.kernel = {1, 3, 3}}}) ==
        "convolution: bias [2] does not fit weight [4, 2, 3, 3] in 1 group");
  CHECK(refusal("convolution", {f32({8, 2, 2, 5}), f32({4, 2, 3, 3})},
                Convolution{{.kernel = {1, 3, 3}}}) ==
        "convolution: a window that covers 3 does not fit into [8, 2, 2, 5], padded to 2");
  CHECK(refusal("convolution", {f32({8, 2}), f32({4, 2, 3, 3})}) ==
        "convolution: takes [N, C, W], [N, C, H, W] or [N, C, D, H, W], not [8, 2]");
  CHECK(refusal("convolution_transpose", {f32({8, 4, 1, 1}), f32({4, 2, 1, 1})},
                Convolution{{.before = {0, 1, 1}}}) ==
        "convolution_transpose: the padding leaves nothing of [8, 4, 1, 1]");
}

TEST_CASE("a convolution's work is two for each product, in every direction") {
  const TensorDesc x = f32({16, 64, 56, 56}), w = f32({128, 64, 3, 3}), y = f32({16, 128, 28, 28});
  const double work = 2.0 * 16 * 28 * 28 * 128 * 64 * 9;
  CHECK(op("convolution").flops(std::vector{x, w}, std::vector{y}) == work);
  CHECK(op("convolution_transpose").flops(std::vector{y, w}, std::vector{x}) == work);
  CHECK(op("convolution_weight_gradient").flops(std::vector{y, x}, std::vector{w}) == work);
}

}  // namespace dpt
