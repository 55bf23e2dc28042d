#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("avg_pool1d goes over sequences") {
  CHECK(lowered("model: [{avg_pool1d: 2}]", real({2, 3, 9})) ==
        "0.avg_pool f32[2, 3, 4] = avg_pool(input)\n");
  CHECK(torch_layer("model: [{avg_pool1d: {kernel_size: 3, stride: 2, padding: 1, ceil_mode: true, "
                    "count_include_pad: false}}]",
                    {2, 3, 9}) ==
        "nn.AvgPool1d(kernel_size=3, stride=2, padding=1, ceil_mode=True, "
        "count_include_pad=False)");
}

TEST_CASE("avg_pool1d has no divisor_override, as in torch") {
  CHECK(complaint(lowered("model: [{avg_pool1d: {kernel_size: 2, divisor_override: 3}}]",
                          real({2, 3, 9})))
            .find("'divisor_override'") != std::string::npos);
}

}  // namespace dpt
