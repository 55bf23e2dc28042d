#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {
namespace {

// Normalised x: -1, -1/2, 3/2.
const Numbers kDy{f64({3, 1}), {1, 2, 3}}, kX{f64({3, 1}), {1, 2, 6}}, kMoments{f64({2}), {3, 0.5}},
    kWeight{f64({1}), {6}}, kY{f64({3, 1}), {1, 0, 2}};

}  // namespace

TEST_CASE("batch_norm_backward makes the gradients of x, the weight and the bias") {
  const std::vector<Numbers> in = {kDy, kX, kMoments, kWeight};
  CHECK(close(run_op("batch_norm_backward", in, BatchNorm{}), {-0.5, 1.25, -0.75}));
  CHECK(run_op("batch_norm_backward", in, BatchNorm{}, {}, 1) == std::vector<double>{2.5});
  CHECK(run_op("batch_norm_backward", in, BatchNorm{}, {}, 2) == std::vector<double>{6});
}

TEST_CASE("batch_norm_relu_backward leaves out what relu has cut off, by its result") {
  const std::vector<Numbers> in = {kDy, kX, kMoments, kWeight, kY};
  for (const std::string op : {"batch_norm_relu_backward", "batch_norm_add_relu_backward"}) {
    CHECK(close(run_op(op, in, BatchNorm{}), {2.5, -2.25, -0.25}));
    CHECK(run_op(op, in, BatchNorm{}, {}, 1) == std::vector<double>{3.5});
    CHECK(run_op(op, in, BatchNorm{}, {}, 2) == std::vector<double>{4});
  }
  CHECK(run_op("batch_norm_add_relu_backward", in, BatchNorm{}, {}, 3) ==
        std::vector<double>{1, 0, 3});
}

TEST_CASE("batch_norm_add_relu_backward takes the sum of two gradients") {
  const Numbers half{f64({3, 1}), {0.5, 1, 1.5}};
  const std::vector<Numbers> in = {half, kX, kMoments, kWeight, kY, half};
  CHECK(close(run_op("batch_norm_add_relu_backward", in, BatchNorm{}), {2.5, -2.25, -0.25}));
  CHECK(run_op("batch_norm_add_relu_backward", in, BatchNorm{}, {}, 3) ==
        std::vector<double>{1, 0, 3});
}

TEST_CASE("batch_norm_backward names what does not fit") {
  CHECK(refusal("batch_norm_backward", {f32({8, 4}), f32({8, 4}), f64({8}), f32({2})}) ==
        "batch_norm_backward: [2] does not fit the channels, which take [4]");
}

}  // namespace dpt
