#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("count_correct takes the first of equal maxima and counts nan as wrong") {
  CHECK(run_op("count_correct", {{f32({5, 2}), {1, 2, 3, 3, 3, 3, NAN, 0, 0, NAN}},
                                 {i32({5}), {1, 0, 1, 0, 0}}}) == std::vector<double>{2});
}

TEST_CASE("count_correct goes along the extent of the classes") {
  const std::vector<Numbers> in = {{f32({1, 2, 2}), {1, 2, 4, 3}}, {i32({1, 2}), {1, 0}}};
  CHECK(run_op("count_correct", in, CountCorrect{1}) == std::vector<double>{1});
  CHECK(run_op("count_correct", in, CountCorrect{2}) == std::vector<double>{2});
}

TEST_CASE("count_correct refuses targets that are no classes") {
  CHECK(refusal("count_correct", {f32({5, 2}), f32({5, 2})}) ==
        "count_correct: output f32[5, 2] needs classes i32[5] as targets, not f32[5, 2]");
}

}  // namespace dpt
