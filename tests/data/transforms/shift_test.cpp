#include "applied.h"

namespace dpt {

TEST_CASE("shift adds") {
  CHECK(applied("shift", "-0.5", {3, 0.5F}) == std::vector<float>{2.5F, 0});
  CHECK(torch_of("shift", "-0.5") == "x = x + -0.5\n");
}

}  // namespace dpt
