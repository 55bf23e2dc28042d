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

TEST_CASE("relu lets nan through and keeps large numbers finite where torch does") {
  const auto y = run_op("relu", {{f32({1, 3}), {NAN, 1e4, -1e4}}});
  CHECK(std::isnan(y[0]));
  CHECK(y[1] == 1e4);
  CHECK(y[2] == 0);
}

}  // namespace dpt
