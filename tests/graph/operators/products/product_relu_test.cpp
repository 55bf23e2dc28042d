#include <cmath>
#include <utility>
#include <vector>

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

TEST_CASE("relu's gradient behind a product goes by relu's result") {
  const Given dy{f32({2, 1}), {2, -3}}, w{f32({1, 3}), {1, 10, 100}};
  const Given y{f32({2, 3}), {0, 1, NAN, 3, -1, 2}};
  const Given mask{{DType::u8, {2, 16}}, std::vector<double>(32, 255)};  // nobody's to read
  CHECK(run_op("matmul_relu_gradient", {dy, w, y, mask}) ==
        std::vector<double>{0, 20, 200, -3, 0, -300});
}

TEST_CASE("linear_relu_mask makes what linear_relu makes, and room for 128 bits in 16 bytes") {
  for (const auto& [n, bytes] : {std::pair<int64_t, int64_t>{1, 16}, {128, 16}, {129, 32}}) {
    const std::vector<TensorDesc> in = {f32({2, 3, 5}), f32({n, 5})};
    const auto out = op("linear_relu_mask").infer(in, {});
    CHECK(out[0] == f32({2, 3, n}));
    CHECK(out[1] == TensorDesc{DType::u8, {2, 3, bytes}});
  }
}

TEST_CASE("convolution_relu leaves out what is below 0 after the bias") {
  const Convolution pairs{.window = {.kernel = {1, 1, 2}}};
  const Given x{f32({1, 1, 3}), {1, 2, -4}}, w{f32({2, 1, 2}), {1, 1, -1, 1}};
  CHECK(run_op("convolution_relu", {x, w}, pairs) == std::vector<double>{3, 0, 1, 0});
  CHECK(run_op("convolution_relu", {x, w, {f32({2}), {2.5, -0.5}}}, pairs) ==
        std::vector<double>{5.5, 0.5, 0.5, 0});
}

TEST_CASE("a product with relu names what does not fit") {
  CHECK(refusal("linear_relu", {f32({32, 400}), f32({10, 784})}) ==
        "linear: input [32, 400] does not fit weight [10, 784]");
}

}  // namespace dpt
