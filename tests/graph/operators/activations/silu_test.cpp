#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("silu and its gradient are torch's") {
  const Numbers x{f64({1, 8}), {-3.5, -3, -1, -0.25, 0, 0.5, 3, 4.5}};
  const Numbers ones{f64({1, 8}), std::vector<double>(8, 1)};
  const Numbers y{f64({1, 8}), run_op("silu", {x})};
  CHECK(close(y.content,
              {-0.1025928076297471, -0.1422776195327004, -0.2689414213699951, -0.1094558747785505,
               0, 0.3112296656009273, 2.8577223804673, 4.450558758162331}));
  CHECK(close(run_op("silu_gradient", {x, ones}),
              {-0.07027335282771814, -0.08810410601516962, 0.07232948812851325, 0.3762899784298023,
               0.5, 0.7399611873026519, 1.088104106015169, 1.03791109111942}));
}

}  // namespace dpt
