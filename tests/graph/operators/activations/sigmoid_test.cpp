#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("sigmoid and its gradient are torch's") {
  const Numbers x{f64({1, 8}), {-3.5, -3, -1, -0.25, 0, 0.5, 3, 4.5}};
  const Numbers ones{f64({1, 8}), std::vector<double>(8, 1)};
  const Numbers y{f64({1, 8}), run_op("sigmoid", {x})};
  CHECK(close(y.content,
              {0.02931223075135632, 0.04742587317756678, 0.2689414213699951, 0.4378234991142019,
               0.5, 0.6224593312018546, 0.9525741268224334, 0.9890130573694068}));
  CHECK(close(run_op("sigmoid_gradient", {y, ones}),
              {0.02845302387973556, 0.04517665973091214, 0.1966119332414819, 0.2461340827375983,
               0.25, 0.2350037122015945, 0.045176659730912, 0.01086622972222524}));
}

}  // namespace dpt
