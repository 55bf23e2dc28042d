#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("elu and its gradient are torch's") {
  const Numbers x{f64({1, 8}), {-3.5, -3, -1, -0.25, 0, 0.5, 3, 4.5}};
  const Numbers ones{f64({1, 8}), std::vector<double>(8, 1)};
  const Numbers y{f64({1, 8}), run_op("elu", {x}, Elu{.alpha = 0.7})};
  CHECK(close(y.content, {-0.6788618316043771, -0.6651490521424952, -0.4424843911799903,
                          -0.1548394518500166, 0, 0.5, 3, 4.5}));
  CHECK(close(run_op("elu_gradient", {x, ones}, Elu{.alpha = 0.7}),
              {0.02113816839562295, 0.03485094785750476, 0.2575156088200096, 0.5451605481499834,
               0.7, 1, 1, 1}));
}

}  // namespace dpt
