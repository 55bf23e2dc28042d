#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("prelu has one slope, or one for each channel") {
  const Given x{f32({1, 2, 2}), {-1, 2, -3, 4}};
  CHECK(run_op("prelu", {x, {f32({1}), {0.5}}}) == std::vector<double>{-0.5, 2, -1.5, 4});
  CHECK(run_op("prelu", {x, {f32({2}), {0.5, 2}}}) == std::vector<double>{-0.5, 2, -6, 4});
  CHECK(refusal("prelu", {f32({8, 4}), f32({2})}) ==
        "prelu: weight [2] is neither [1] nor the channels of [8, 4]");
}

TEST_CASE("prelu's slopes learn from what is negative") {
  const Given dy{f32({1, 2, 2}), {1, 10, 100, 1000}}, x{f32({1, 2, 2}), {-1, 2, -3, 0}};
  CHECK(run_op("prelu_weight_gradient", {dy, x}, PRelu{2}) == std::vector<double>{-1, -300});
  CHECK(run_op("prelu_weight_gradient", {dy, x}) == std::vector<double>{-301});
  CHECK(run_op("prelu_gradient", {dy, x, {f32({1}), {0.5}}}) ==
        std::vector<double>{0.5, 10, 50, 500});
}

}  // namespace dpt
