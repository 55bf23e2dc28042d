#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("relu6 and its gradient are torch's") {
  const Numbers x{f64({1, 8}), {-3.5, -3, -1, -0.25, 0, 0.5, 5, 7.5}};
  const Numbers ones{f64({1, 8}), std::vector<double>(8, 1)};
  const Numbers y{f64({1, 8}), run_op("relu6", {x})};
  CHECK(close(y.content, {0, 0, 0, 0, 0, 0.5, 5, 6}));
  CHECK(close(run_op("relu6_gradient", {y, ones}), {0, 0, 0, 0, 0, 1, 1, 0}));
}

}  // namespace dpt
