#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("hardswish and its gradient are torch's") {
  const Numbers x{f64({1, 8}), {-3.5, -3, -1, -0.25, 0, 0.5, 3, 4.5}};
  const Numbers ones{f64({1, 8}), std::vector<double>(8, 1)};
  const Numbers y{f64({1, 8}), run_op("hardswish", {x})};
  CHECK(close(y.content,
              {0, 0, -0.3333333333333333, -0.1145833333333333, 0, 0.2916666666666667, 3, 4.5}));
  CHECK(close(run_op("hardswish_gradient", {x, ones}),
              {0, 0, 0.1666666666666667, 0.4166666666666667, 0.5, 0.6666666666666666, 1, 1}));
}

}  // namespace dpt
