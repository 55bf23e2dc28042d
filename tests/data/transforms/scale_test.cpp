#include "applied.h"

namespace dpt {

TEST_CASE("scale multiplies") {
  CHECK(applied("scale", "0.1", {3, -2}) == std::vector<float>{3 * 0.1F, -2 * 0.1F});
  CHECK(torch_of("scale", "0.1") == "x = x * 0.1\n");
}

}  // namespace dpt
