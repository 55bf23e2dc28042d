#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("glu and its gradient are torch's") {
  const Given x{f64({1, 6}), {1, -2, 0.5, 3, -0.25, 4}}, ones{f64({1, 3}), {1, 1, 1}};
  CHECK(close(run_op("glu", {x}, Glu{1}),
              {0.9525741268224334, -0.8756469982284039, 0.4910068950189542}));
  CHECK(close(run_op("glu_gradient", {ones, x}, Glu{1}),
              {0.9525741268224334, 0.4378234991142019, 0.9820137900379085, 0.045176659730912,
               -0.4922681654751967, 0.008831353106645554}));
}

TEST_CASE("glu halves any dimension behind the batch") {
  // Channels [2, 3] and gates [0, 0] of two positions each: sigmoid(0) is 1 / 2.
  const Given x{f64({1, 2, 2}), {2, 3, 0, 0}};
  CHECK(close(run_op("glu", {x}, Glu{1}), {1, 1.5}));
  CHECK(close(run_op("glu", {x}, Glu{2}), {2 / (1 + std::exp(-3.0)), 0}));
}

TEST_CASE("glu refuses what cannot be halved") {
  CHECK(refusal("glu", {f32({2, 3})}, Glu{1}) == "glu: dimension 1 of [2, 3] cannot be halved");
  CHECK(refusal("glu", {f32({2, 4})}, Glu{0}) ==
        "glu: [2, 4] has no dimension 0 behind that of the samples");
}

}  // namespace dpt
