#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {
namespace {

// Normalised x: -1, -1/2, 3/2.
const Given kDy{f64({3, 1}), {1, 2, 3}}, kX{f64({3, 1}), {1, 2, 6}}, kMoments{f64({2}), {3, 0.5}},
    kWeight{f64({1}), {6}}, kY{f64({3, 1}), {1, 0, 2}};
const BatchNorm kRelu{.relu = true}, kAddRelu{.add = true, .relu = true};

}  // namespace

TEST_CASE("batch_norm_backward makes the gradients of x, the weight and the bias") {
  const std::vector<Given> in = {kDy, kX, kMoments, kWeight};
  CHECK(close(run_op("batch_norm_backward", in, BatchNorm{}), {-0.5, 1.25, -0.75}));
  CHECK(run_op("batch_norm_backward", in, BatchNorm{}, {}, 1) == std::vector<double>{2.5});
  CHECK(run_op("batch_norm_backward", in, BatchNorm{}, {}, 2) == std::vector<double>{6});
}

TEST_CASE("batch_norm_backward leaves out what relu has cut off, by its result") {
  const std::vector<Given> in = {kDy, kX, kMoments, kWeight, kY};
  for (const BatchNorm& s : {kRelu, kAddRelu}) {
    CHECK(close(run_op("batch_norm_backward", in, s), {2.5, -2.25, -0.25}));
    CHECK(run_op("batch_norm_backward", in, s, {}, 1) == std::vector<double>{3.5});
    CHECK(run_op("batch_norm_backward", in, s, {}, 2) == std::vector<double>{4});
  }
  CHECK(run_op("batch_norm_backward", in, kAddRelu, {}, 3) == std::vector<double>{1, 0, 3});
}

TEST_CASE("batch_norm_backward takes the sum of two gradients") {
  const Given half{f64({3, 1}), {0.5, 1, 1.5}};
  const std::vector<Given> in = {half, kX, kMoments, kWeight, kY, half};
  CHECK(close(run_op("batch_norm_backward", in, kAddRelu), {2.5, -2.25, -0.25}));
  CHECK(run_op("batch_norm_backward", in, kAddRelu, {}, 3) == std::vector<double>{1, 0, 3});
}

// Two channels of two samples; moments: mean 1 and 2, rstd 2 and 0.5.
TEST_CASE("the gradients of batch_norm with relu take part only where the result is above 0") {
  const Given dy{f64({2, 2}), {3, 5, 7, 11}}, x{f64({2, 2}), {1.5, 1, 0.5, 4}},
      m{f64({4}), {1, 2, 2, 0.5}};
  CHECK(run_op("batch_norm_sums", {dy, x, m}, kRelu) == std::vector<double>{3, 11, 3, 11, 2});
  CHECK(run_op("batch_norm_input_gradient", {dy, x, m}, BatchNorm{.batch = false, .relu = true}) ==
        std::vector<double>{6, 0, 0, 5.5});
  // The bias moves the position where it begins.
  CHECK(run_op("batch_norm_sums", {dy, x, m, {f64({2}), {1, 1}}, {f64({2}), {2, -2}}}, kRelu) ==
        std::vector<double>{10, 0, 3 - 7, 0, 2});
}

TEST_CASE("the gradient of batch_norm with an addition is that of what was added, and sums of it") {
  const std::vector<Given> in = {{f64({2, 2}), {3, 5, 7, 11}},
                                 {f64({2, 2}), {1.5, 1, 0.5, 4}},
                                 {f64({4}), {1, 2, 2, 0.5}},
                                 {f64({2, 2}), {0, 0.5, 0.5, 1}}};
  CHECK(run_op("batch_norm_sums", in, kAddRelu) == std::vector<double>{0, 5, 7, 11});
  CHECK(run_op("batch_norm_sums", in, kAddRelu, {}, 1) == std::vector<double>{7, 16, -7, 8.5, 2});
  std::vector<Given> two = in;
  two.push_back({f64({2, 2}), {1, 1, 1, 1}});
  CHECK(run_op("batch_norm_sums", two, kAddRelu) == std::vector<double>{0, 6, 8, 12});
}

TEST_CASE("between halves the gradient of what was added is rounded") {
  const BatchNorm halves{.add = true, .relu = true, .between = DType::bf16};
  const std::vector<Given> in = {{f64({1, 1}), {1}},
                                 {f64({1, 1}), {3}},
                                 {f64({2}), {0, 1}},
                                 {f64({1, 1}), {1}},
                                 {f64({1, 1}), {0x1p-8}}};
  CHECK(run_op("batch_norm_sums", in, halves) == std::vector<double>{1});
  CHECK(run_op("batch_norm_sums", in, halves, {}, 1) == std::vector<double>{1, 3, 1});
}

TEST_CASE("batch_norm_backward names what does not fit") {
  CHECK(refusal("batch_norm_backward", {f32({8, 4}), f32({8, 4}), f64({8}), f32({2})}) ==
        "batch_norm_backward: [2] does not fit the channels, which take [4]");
}

}  // namespace dpt
