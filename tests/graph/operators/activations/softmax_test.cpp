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

TEST_CASE("log_softmax is torch's") {
  CHECK(close(run_op("log_softmax", {{f64({1, 3}), {1, 2, 3}}}, Softmax{1}),
              {-2.4076059644443806, -1.4076059644443804, -0.4076059644443803}));
}

TEST_CASE("log_softmax does not overflow and gives -inf for -inf") {
  const auto y = run_op("log_softmax", {{f32({2, 2}), {1000, -1000, 0, -INFINITY}}}, Softmax{1});
  CHECK(y == std::vector<double>{0, -2000, 0, -INFINITY});
}

TEST_CASE("log_softmax's gradient of an even upstream is zero on an even row") {
  const double y = std::log(0.25);
  CHECK(close(run_op("log_softmax_gradient",
                     {{f64({1, 4}), {y, y, y, y}}, {f64({1, 4}), {1, 0, 0, 0}}}, Softmax{1}),
              {0.75, -0.25, -0.25, -0.25}));
}

}  // namespace dpt
