#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("softplus and its gradient are torch's") {
  const Numbers x{f64({1, 8}), {-3.5, -3, -1, -0.25, 0, 0.5, 3, 4.5}};
  const Numbers ones{f64({1, 8}), std::vector<double>(8, 1)};
  const Numbers y{f64({1, 8}), run_op("softplus", {x}, Softplus{.beta = 2, .threshold = 3})};
  CHECK(close(y.content, {0.0004557332268871224, 0.001237842568865225, 0.06346400552148625,
                          0.2370384920900533, 0.3465735902799726, 0.6566308437591114, 3, 4.5}));
  CHECK(close(run_op("softplus_gradient", {x, ones}, Softplus{.beta = 2, .threshold = 3}),
              {0.0009110511944006454, 0.002472623156634775, 0.1192029220221175, 0.3775406687981455,
               0.5, 0.7310585786300049, 1, 1}));
}

}  // namespace dpt
