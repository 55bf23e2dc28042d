#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("kl_div is torch's, zero where the target is") {
  const std::vector<Numbers> in = {
      {f64({1, 3}), {-1, -2, -0.5}}, {f64({1, 3}), {0, 0.25, 0.75}}, {f64({1}), {1}}};
  CHECK(close(run_op("kl_div", in, KlDiv{}), {0.3126648553811917}));
  CHECK(close(run_op("kl_div_gradient", in, KlDiv{}), {0, -0.25, -0.75}));
}

TEST_CASE("kl_div takes targets that are logarithms") {
  const std::vector<Numbers> in = {
      {f64({1, 3}), {-1, -2, -0.5}}, {f64({1, 3}), {-1, -0.5, -3}}, {f64({1}), {1}}};
  CHECK(close(run_op("kl_div", in, KlDiv{.log_target = true}), {0.7853283186492903}));
  CHECK(close(run_op("kl_div_gradient", in, KlDiv{.log_target = true}),
              {-0.3678794411714423, -0.6065306597126334, -0.04978706836786394}));
}

TEST_CASE("kl_div refuses targets of another shape and helps with classes") {
  CHECK(refusal("kl_div", {f32({4, 3}), f32({4, 1}), f32({1})}) ==
        "kl_div: output f32[4, 3] needs targets f32[4, 3], not f32[4, 1]");
  CHECK(refusal("kl_div", {f32({4, 3}), i32({4}), f32({1})}) ==
        "kl_div: output f32[4, 3] needs targets f32[4, 3], not i32[4]; class numbers become such "
        "targets by target_transforms: [one_hot]");
}

}  // namespace dpt
