#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("position_embedding adds the rows of the places to each sample") {
  const Given x{f32({2, 2, 2}), {1, 2, 3, 4, 5, 6, 7, 8}};
  CHECK(run_op("position_embedding", {x, {f32({3, 2}), {10, 20, 30, 40, 50, 60}}}) ==
        std::vector<double>{11, 22, 33, 44, 15, 26, 37, 48});
  CHECK(run_op("position_embedding_gradient", {x}, PositionEmbedding{3}) ==
        std::vector<double>{6, 8, 10, 12, 0, 0});
}

TEST_CASE("position_embedding refuses rows that do not fit") {
  for (const Shape& w : {Shape{1, 2}, Shape{2, 3}, Shape{2}})
    CHECK(refusal("position_embedding", {f32({2, 2, 2}), f32(w)}) ==
          "position_embedding: input [2, 2, 2] does not fit weight " + w.str());
  CHECK(refusal("position_embedding", {f32({2, 2}), f32({2, 2})}) ==
        "position_embedding: input [2, 2] does not fit weight [2, 2]");
}

}  // namespace dpt
