#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("count_correct takes torch's argmax: the first nan, else the first of equal maxima") {
  CHECK(run_op("count_correct", {{f32({5, 2}), {1, 2, 3, 3, 3, 3, NAN, 0, 0, NAN}},
                                 {i32({5}), {1, 0, 1, 0, 0}}}) == std::vector<double>{3});
  // torch.argmax of these rows is 1, 0, 0.
  CHECK(run_op("count_correct", {{f32({3, 3}), {1, NAN, 2, NAN, 1, NAN, NAN, NAN, NAN}},
                                 {i32({3}), {1, 2, 0}}}) == std::vector<double>{2});
}

TEST_CASE("count_correct passes over places whose class is ignored") {
  const std::vector<Given> in = {{f32({4, 2}), {1, 2, 2, 1, 1, 2, 2, 1}}, {i32({4}), {1, 0, 0, 1}}};
  CHECK(run_op("count_correct", in, CountCorrect{}) == std::vector<double>{2});
  CHECK(run_op("count_correct", in, CountCorrect{.ignore_index = 1}) == std::vector<double>{1});
}

TEST_CASE("count_correct goes along the extent of the classes") {
  const std::vector<Given> in = {{f32({1, 2, 2}), {1, 2, 4, 3}}, {i32({1, 2}), {1, 0}}};
  CHECK(run_op("count_correct", in, CountCorrect{1}) == std::vector<double>{1});
  CHECK(run_op("count_correct", in, CountCorrect{2}) == std::vector<double>{2});
}

TEST_CASE("count_correct refuses targets that are no classes") {
  CHECK(refusal("count_correct", {f32({5, 2}), f32({5, 2})}) ==
        "count_correct: output f32[5, 2] needs classes i32[5] as targets, not f32[5, 2]");
}

}  // namespace dpt
