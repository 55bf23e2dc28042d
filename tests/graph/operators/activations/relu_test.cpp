#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("relu and its gradient are torch's") {
  const Numbers x{f64({1, 8}), {-3.5, -3, -1, -0.25, 0, 0.5, 3, 4.5}};
  const Numbers ones{f64({1, 8}), std::vector<double>(8, 1)};
  const Numbers y{f64({1, 8}), run_op("relu", {x})};
  CHECK(close(y.content, {0, 0, 0, 0, 0, 0.5, 3, 4.5}));
  CHECK(close(run_op("relu_gradient", {y, ones}), {0, 0, 0, 0, 0, 1, 1, 1}));
}

}  // namespace dpt
