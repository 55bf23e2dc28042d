#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("selu and its gradient are torch's") {
  const Numbers x{f64({1, 8}), {-3.5, -3, -1, -0.25, 0, 0.5, 3, 4.5}};
  const Numbers ones{f64({1, 8}), std::vector<double>(8, 1)};
  const Numbers y{f64({1, 8}), run_op("selu", {x})};
  CHECK(close(y.content,
              {-1.705009340957283, -1.670568728767112, -1.111330737812563, -0.388890197478119, 0,
               0.5253504936777402, 3.152102962066441, 4.728154443099662}));
  CHECK(close(run_op("selu_gradient", {x, ones}),
              {0.05308999989009366, 0.08753061208026487, 0.646768603034814, 1.369209143369258,
               1.758099340847377, 1.05070098735548, 1.05070098735548, 1.05070098735548}));
}

}  // namespace dpt
