#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("linear refuses a weight that does not fit and names both shapes") {
  CHECK(refusal("linear", {f32({32, 400}), f32({10, 784})}) ==
        "linear: input [32, 400] does not fit weight [10, 784]");
  CHECK(refusal("linear", {f32({32, 784}), f32({10, 784}), f32({11})}) ==
        "linear: bias [11] does not fit weight [10, 784]");
  CHECK(refusal("linear", {i32({32, 784}), f32({10, 784})}) ==
        "linear: the input must be real numbers, not i32[32, 784]");
}

TEST_CASE("linear multiplies by the transposed weight and adds the bias") {
  CHECK(run_op("linear", {{f32({1, 2}), {1, 2}},
                          {f32({3, 2}), {3, 4, 5, 6, 7, 8}},
                          {f32({3}), {0, 0, 100}}}) == std::vector<double>{11, 17, 123});
}

TEST_CASE("linear's gradient multiplies by the weight, by the rows, and sums the rows") {
  const Given dy{f32({2, 3}), {1, 2, 3, 4, 5, 6}};
  const Given w{f32({3, 2}), {1, 0, 0, 1, 1, 1}}, x{f32({2, 2}), {1, 2, 3, 4}};
  CHECK(run_op("matmul", {dy, w}) == std::vector<double>{4, 5, 10, 11});
  CHECK(run_op("linear_weight_gradient", {dy, x}) == std::vector<double>{13, 18, 17, 24, 21, 30});
  CHECK(run_op("sum_rows", {dy}) == std::vector<double>{5, 7, 9});
  for (const size_t result : {0U, 1U})
    CHECK(run_op("linear_weight_bias_gradient", {dy, x}, {}, {}, result) ==
          run_op(result == 0 ? "linear_weight_gradient" : "sum_rows",
                 result == 0 ? std::vector{dy, x} : std::vector{dy}));
}

TEST_CASE("linear's work is two for each product") {
  const std::vector<TensorDesc> x = {f32({100, 784}), f32({200, 784})}, y = {f32({100, 200})};
  CHECK(op("linear").flops(x, y) == 2.0 * 100 * 784 * 200);
  CHECK(op("matmul").flops({{y[0], x[1]}}, {{x[0]}}) == 2.0 * 100 * 784 * 200);
  CHECK(op("linear_weight_gradient").flops({{y[0], x[0]}}, {{x[1]}}) == 2.0 * 100 * 784 * 200);
}

}  // namespace dpt
