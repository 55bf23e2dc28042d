#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("tanh and its gradient are torch's") {
  const Numbers x{f64({1, 8}), {-3.5, -3, -1, -0.25, 0, 0.5, 3, 4.5}};
  const Numbers ones{f64({1, 8}), std::vector<double>(8, 1)};
  const Numbers y{f64({1, 8}), run_op("tanh", {x})};
  CHECK(close(y.content,
              {-0.9981778976111987, -0.9950547536867305, -0.7615941559557649, -0.2449186624037091,
               0, 0.4621171572600098, 0.9950547536867305, 0.9997532108480275}));
  CHECK(close(run_op("tanh_gradient", {y, ones}),
              {0.003640884720487358, 0.009866037165440166, 0.4199743416140261, 0.940014848806378, 1,
               0.7864477329659274, 0.009866037165440166, 0.0004935173990594991}));
}

}  // namespace dpt
