#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("leaky_relu and its gradient are torch's") {
  const Numbers x{f64({1, 8}), {-3.5, -3, -1, -0.25, 0, 0.5, 3, 4.5}};
  const Numbers ones{f64({1, 8}), std::vector<double>(8, 1)};
  const Numbers y{f64({1, 8}), run_op("leaky_relu", {x}, LeakyRelu{.negative_slope = 0.2})};
  CHECK(close(y.content, {-0.7000000000000001, -0.6000000000000001, -0.2, -0.05, 0, 0.5, 3, 4.5}));
  CHECK(close(run_op("leaky_relu_gradient", {x, ones}, LeakyRelu{.negative_slope = 0.2}),
              {0.2, 0.2, 0.2, 0.2, 0.2, 1, 1, 1}));
}

}  // namespace dpt
