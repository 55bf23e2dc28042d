#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("embedding gives the rows that indices name") {
  CHECK(run_op("embedding", {{i32({3}), {2, 0, 2}}, {f32({3, 2}), {1, 2, 3, 4, 5, 6}}},
               Embedding{}) == std::vector<double>{5, 6, 1, 2, 5, 6});
}

TEST_CASE("embedding's gradient sums over the uses of a row and leaves the padding row alone") {
  const std::vector<Given> in = {{f32({3, 2}), {1, 2, 3, 4, 5, 6}}, {i32({3}), {2, 0, 2}}};
  CHECK(run_op("embedding_gradient", in, Embedding{.rows = 3}) ==
        std::vector<double>{3, 4, 0, 0, 6, 8});
  CHECK(run_op("embedding_gradient", in, Embedding{.padding_idx = 2, .rows = 3}) ==
        std::vector<double>{3, 4, 0, 0, 0, 0});
}

TEST_CASE("embedding names the sample of an index that is no row") {
  CHECK_THROWS_WITH_AS(
      run_op("embedding", {{i32({2, 2}), {0, 1, 1, 3}}, {f32({3, 1}), {1, 2, 3}}}, Embedding{}),
      "embedding: index 3 of sample 1 in its batch is not in [0, 3)", Error);
  CHECK(refusal("embedding", {f32({4}), f32({3, 2})}) ==
        "embedding: takes indices (i32), not f32[4]");
}

}  // namespace dpt
