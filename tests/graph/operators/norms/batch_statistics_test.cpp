#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("channel_sums adds x and x^2 by channel and counts") {
  CHECK(run_op("channel_sums", {{f64({2, 2, 2}), {1, 2, 3, 4, 5, 6, 7, 8}}}) ==
        std::vector<double>{14, 22, 1 + 4 + 25 + 36, 9 + 16 + 49 + 64, 4});
}

TEST_CASE("moments are the mean and the inverse of the biased deviation") {
  CHECK(close(run_op("moments", {{f64({3}), {6, 14, 3}}}, BatchNorm{.eps = 0}),
              {2, 1 / std::sqrt(14.0 / 3 - 4)}));
  // Rounding must not make a negative variance.
  CHECK(run_op("moments", {{f64({3}), {3e8, 3e16 - 8, 3}}}, BatchNorm{.eps = 0.25})[1] == 2);
}

TEST_CASE("running statistics take their part of the new batch, the variance without bias") {
  const std::vector<Given> in = {
      {f64({3}), {6, 14, 3}}, {f64({1}), {1}}, {f64({1}), {2}}, {{DType::i64, {}}, {3}}};
  CHECK(close(run_op("update_running", in, BatchNorm{.momentum = 0.25}), {0.75 + 0.5}));
  CHECK(close(run_op("update_running", in, BatchNorm{.momentum = 0.25}, {}, 1), {1.5 + 0.25}));
  CHECK(run_op("update_running", in, BatchNorm{}, {}, 2) == std::vector<double>{4});
  CHECK(close(run_op("update_running", in, BatchNorm{.momentum = -1}), {0.75 + 0.5}));
  const std::vector<Given> one = {{f64({3}), {5, 25, 1}}, in[1], in[2], in[3]};
  CHECK(run_op("update_running", one, BatchNorm{}, {}, 1) == std::vector<double>{2});
}

TEST_CASE("channel_sums names what does not fit") {
  CHECK(refusal("channel_sums", {f32({8})}) ==
        "channel_sums: takes [N, C, ...] with at most 3 more dimensions, not [8]");
}

}  // namespace dpt
