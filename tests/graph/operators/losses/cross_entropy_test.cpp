#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("cross_entropy is torch's with weight and smoothing") {
  const std::vector<Given> in = {{f64({2, 3}), {1, 2, -1, 0.5, 0, 3}},
                                 {i32({2}), {2, 1}},
                                 {f64({1}), {1}},
                                 {f64({3}), {1, 2, 0.5}}};
  CHECK(close(run_op("cross_entropy", in, CrossEntropy{.label_smoothing = 0.1}),
              {7.551863426376593}));
  CHECK(close(run_op("cross_entropy_gradient", in, CrossEntropy{.label_smoothing = 0.1}),
              {0.1137146608607042, 0.3330512238623367, -0.4467658847230409, 0.1056661042214332,
               -1.782359246106889, 1.676693141885456}));
}

TEST_CASE("cross_entropy leaves ignored targets out") {
  const std::vector<Given> in = {
      {f64({2, 3}), {1, 2, -1, 0.5, 0, 3}}, {i32({2}), {-100, 1}}, {f64({1}), {1}}};
  CHECK(close(run_op("cross_entropy", in, CrossEntropy{}), {3.1238729583693674}));
  CHECK(close(run_op("cross_entropy_gradient", in, CrossEntropy{}),
              {0, 0, 0, 0.07252144568074775, -0.9560135197079421, 0.8834920740271943}));
}

TEST_CASE("cross_entropy takes probabilities") {
  const std::vector<Given> in = {{f64({2, 3}), {1, 2, -1, 0.5, 0, 3}},
                                 {f64({2, 3}), {0.2, 0.3, 0.5, 0, 1, 0}},
                                 {f64({1}), {2}}};
  CHECK(close(run_op("cross_entropy", in, CrossEntropy{.label_smoothing = 0.2}),
              {2.4331092542354433}));
  CHECK(close(run_op("cross_entropy_gradient", in, CrossEntropy{.label_smoothing = 0.2}),
              {0.01641489683787622, 0.1993589230157873, -0.2157738198536635, 0.002927389507040544,
               -0.4113400931873044, 0.4084127036802638}));
}

TEST_CASE("cross_entropy with all targets ignored is torch's nan, with a gradient of zeros") {
  const std::vector<Given> in = {{f64({1, 3}), {1, 2, 3}}, {i32({1}), {-100}}, {f64({1}), {0}}};
  CHECK(std::isnan(run_op("cross_entropy", in, CrossEntropy{})[0]));
  CHECK(run_op("cross_entropy_gradient", in, CrossEntropy{}) == std::vector<double>{0, 0, 0});
}

TEST_CASE("cross_entropy says what it would take") {
  CHECK(refusal("cross_entropy", {f32({100, 10}), f32({100, 3}), f32({1})}) ==
        "cross_entropy: output f32[100, 10] needs classes i32[100] or probabilities f32[100, 10] "
        "as targets, not f32[100, 3]");
  CHECK(refusal("cross_entropy", {f32({100}), i32({100}), f32({1})}) ==
        "cross_entropy: output f32[100] has no dimension of classes; it must be [N, C] or "
        "[N, C, ...]");
  CHECK(refusal("cross_entropy", {f32({9, 3}), i32({9}), f32({1}), f32({4})}) ==
        "cross_entropy: weight [4] does not fit the 3 classes of output f32[9, 3]");
}

TEST_CASE("cross_entropy names a target that is no class") {
  CHECK_THROWS_WITH_AS(
      run_op("cross_entropy", {{f32({2, 2}), {1, 2, 3, 4}}, {i32({2}), {0, 2}}, {f32({1}), {1}}},
             CrossEntropy{}),
      "target 2 of sample 1 in its batch is not in [0, 2)", Error);
}

}  // namespace dpt
