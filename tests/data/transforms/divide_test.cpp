#include "applied.h"

namespace dpt {

TEST_CASE("divide divides, which is not the same as multiplying by the inverse") {
  CHECK(applied("divide", "255", {125.0F, -1}) ==
        std::vector<float>{125.0F / 255.0F, -1.0F / 255.0F});
  CHECK(torch_of("divide", "{by: 255}") == "x = x / 255\n");
  CHECK(has(complaint_of(transform_type("divide"), "0"), "must not be zero"));
}

}  // namespace dpt
