#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("copy gives the same numbers") {
  CHECK(run_op("copy", {{{DType::f32, {2, 2}}, {1, -2, 3, 0.5}}}, Copy{0, 1}) ==
        std::vector<double>{1, -2, 3, 0.5});
}

}  // namespace dpt
