#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

// Two channels of two samples; moments: mean 1 and 2, rstd 2 and 0.5.
TEST_CASE("batch_norm_relu normalises, scales, shifts and leaves out what is below 0") {
  const Numbers x{f64({2, 2}), {1.5, 1, 0.5, 4}}, m{f64({4}), {1, 2, 2, 0.5}};
  CHECK(run_op("batch_norm_relu", {x, m}) == std::vector<double>{1, 0, 0, 1});
  CHECK(run_op("batch_norm_relu", {x, m, {f64({2}), {3, -2}}, {f64({2}), {-1, 3}}}) ==
        std::vector<double>{2, 4, 0, 1});
}

TEST_CASE("its gradients take part only where the result is above 0") {
  const Numbers dy{f64({2, 2}), {3, 5, 7, 11}}, x{f64({2, 2}), {1.5, 1, 0.5, 4}},
      m{f64({4}), {1, 2, 2, 0.5}};
  CHECK(run_op("batch_norm_relu_sums", {dy, x, m}) == std::vector<double>{3, 11, 3, 11, 2});
  CHECK(run_op("batch_norm_relu_input_gradient", {dy, x, m}, BatchNorm{.batch = false}) ==
        std::vector<double>{6, 0, 0, 5.5});
  // The bias moves the position where it begins.
  CHECK(run_op("batch_norm_relu_sums", {dy, x, m, {f64({2}), {1, 1}}, {f64({2}), {2, -2}}}) ==
        std::vector<double>{10, 0, 3 - 7, 0, 2});
}

TEST_CASE("batch_norm_relu names what does not fit") {
  CHECK(refusal("batch_norm_relu", {f32({8, 4}), f64({8}), f32({2})}) ==
        "batch_norm_relu: [2] does not fit the channels, which take [4]");
}

}  // namespace dpt
