#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

// Two channels of two samples; moments: mean 1 and 2, rstd 2 and 0.5.
TEST_CASE("batch_norm_add_relu adds before it leaves out what is below 0") {
  const Numbers x{f64({2, 2}), {1.5, 1, 0.5, 4}}, r{f64({2, 2}), {-3, 1, 1.5, 0}},
      m{f64({4}), {1, 2, 2, 0.5}};
  CHECK(run_op("batch_norm_add_relu", {x, r, m}) == std::vector<double>{0, 0.5, 0.5, 1});
}

TEST_CASE("its gradient is that of what was added, and sums of it") {
  const std::vector<Numbers> in = {{f64({2, 2}), {0, 0.5, 0.5, 1}},
                                   {f64({2, 2}), {1.5, 1, 0.5, 4}},
                                   {f64({4}), {1, 2, 2, 0.5}},
                                   {f64({2, 2}), {3, 5, 7, 11}}};
  CHECK(run_op("batch_norm_add_relu_gradient", in) == std::vector<double>{0, 5, 7, 11});
  CHECK(run_op("batch_norm_add_relu_gradient", in, {}, {}, 1) ==
        std::vector<double>{7, 16, -7, 8.5, 2});
  std::vector<Numbers> two = in;
  two.push_back({f64({2, 2}), {1, 1, 1, 1}});
  CHECK(run_op("batch_norm_add_relu_gradient", two) == std::vector<double>{0, 6, 8, 12});
}

TEST_CASE("between halves each of its steps is rounded") {
  const BatchNorm halves{.between = DType::bf16};
  // 1 + 2^-8 is halfway between two numbers of bf16, and 1 the even one.
  const double x = 1 + 0x1p-8, r = 2 + 0x1p-6;
  const Numbers m{f64({2}), {0, 1}};
  CHECK(run_op("batch_norm_add_relu", {{f64({1, 1}), {x}}, {f64({1, 1}), {r}}, m}, halves) ==
        std::vector<double>{3.015625});
  const std::vector<Numbers> in = {
      {f64({1, 1}), {1}}, {f64({1, 1}), {3}}, m, {f64({1, 1}), {1}}, {f64({1, 1}), {0x1p-8}}};
  CHECK(run_op("batch_norm_add_relu_gradient", in, halves) == std::vector<double>{1});
  CHECK(run_op("batch_norm_add_relu_gradient", in, halves, {}, 1) == std::vector<double>{1, 3, 1});
}

TEST_CASE("batch_norm_add_relu names what does not fit") {
  CHECK(refusal("batch_norm_add_relu", {f32({8, 4}), f32({8, 2}), f64({8})}) ==
        "batch_norm_add_relu: f32[8, 4] and f32[8, 2] do not fit together");
}

}  // namespace dpt
