#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("reorder keeps values and moves them in memory") {
  const TensorDesc plain{DType::f32, {1, 2, 1, 3}},
      last{DType::f32, {1, 2, 1, 3}, Layout::channels_last};
  CHECK(run_op("reorder", {{plain, {1, 2, 3, 4, 5, 6}}}, Reorder{Layout::channels_last}) ==
        std::vector<double>{1, 4, 2, 5, 3, 6});
  CHECK(run_op("reorder", {{last, {1, 4, 2, 5, 3, 6}}}, Reorder{Layout::plain}) ==
        std::vector<double>{1, 2, 3, 4, 5, 6});
  const TensorDesc weight{DType::f32, {2, 3, 1, 1}};
  CHECK(run_op("reorder", {{weight, {1, 2, 3, 4, 5, 6}}}, Reorder{Layout::transposed}) ==
        std::vector<double>{1, 4, 2, 5, 3, 6});
}

}  // namespace dpt
