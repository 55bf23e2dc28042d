#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("group_norm normalises each group of channels of each sample") {
  const std::vector<Numbers> in = {
      {f64({1, 2, 2}), {1, 2, 4, 9}}, {f64({2}), {1, 2}}, {f64({2}), {0, 1}}};
  const double rstd = 1 / std::sqrt(9.5 + 1e-5);
  CHECK(close(run_op("group_norm", in, GroupNorm{1}), {-3 * rstd, -2 * rstd, 1, 10 * rstd + 1}));
  CHECK(run_op("group_norm", in, GroupNorm{1}, {}, 1) == std::vector<double>{4});
  CHECK(close(run_op("group_norm", in, GroupNorm{1}, {}, 2), {rstd}));
  CHECK(run_op("group_norm", in, GroupNorm{2}, {}, 1) == std::vector<double>{1.5, 6.5});
}

TEST_CASE("group_norm names what does not fit") {
  CHECK(refusal("group_norm", {f32({8, 4})}, GroupNorm{3}) ==
        "group_norm: the channels of [8, 4] cannot be split into 3 groups");
  CHECK(refusal("group_norm", {f32({8, 4}), f32({2}), f32({2})}, GroupNorm{2}) ==
        "group_norm: parameter [2] does not fit the channels of [8, 4]");
}

}  // namespace dpt
