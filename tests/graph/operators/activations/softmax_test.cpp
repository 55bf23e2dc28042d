#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("softmax is torch's, along any dimension but the samples'") {
  const std::vector<double> y = {0.09003057317038046, 0.24472847105479764, 0.6652409557748218};
  CHECK(close(run_op("softmax", {{f64({1, 3}), {1, 2, 3}}}, Softmax{1}), y));
  CHECK(close(run_op("softmax", {{f64({1, 3, 1}), {1, 2, 3}}}, Softmax{1}), y));
  CHECK(run_op("softmax", {{f64({1, 3, 1}), {1, 2, 3}}}, Softmax{2}) ==
        std::vector<double>{1, 1, 1});
}

TEST_CASE("softmax does not overflow") {
  CHECK(run_op("softmax", {{f32({1, 2}), {3e38, -3e38}}}, Softmax{1}) == std::vector<double>{1, 0});
}

TEST_CASE("softmax along the samples is refused") {
  CHECK(refusal("softmax", {f32({4, 3})}, Softmax{0}) ==
        "softmax: [4, 3] has no dimension 0 behind that of the samples");
  CHECK(refusal("softmax", {f32({4, 3})}, Softmax{2}) ==
        "softmax: [4, 3] has no dimension 2 behind that of the samples");
}

}  // namespace dpt
