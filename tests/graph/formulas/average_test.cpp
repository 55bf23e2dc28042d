#include "graph/formulas/average.h"

#include <cmath>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/simd/simd.h"
#include "optim/fixture.h"

namespace dpt {
namespace {

using optim_test::at, optim_test::number, optim_test::numbers;

// Compares all averages of a case, element by element, with those of AveragedModel.
template <class T>
void check_case(const Node& golden, double tolerance) {
  const double decay = number(at(golden, "decay"));
  CAPTURE(decay);
  const Node &weights = at(golden, "weights"), &averages = at(golden, "averages");
  REQUIRE(weights.items.size() == 20);
  std::vector<T> average(3, T(7));  // the first update overwrites it
  for (size_t k = 0; k < weights.items.size(); ++k) {
    const std::vector<double> weight = numbers(weights.items[k]);
    const std::vector<double> expected = numbers(averages.items[k]);
    for (size_t i = 0; i < average.size(); ++i) {
      average[i] = formula::lerp(average[i], static_cast<T>(weight[i]),
                                 formula::average_rate<T>(decay, k == 0));
      CHECK(std::abs(static_cast<double>(average[i]) - expected[i]) <= tolerance);
    }
  }
}

TEST_CASE("averages are those of torch.optim.swa_utils.AveragedModel") {
  const auto golden = optim_test::fixture("averages");
  // PyTorch may use fused multiply-adds, so each update may differ by one rounding of a number
  // below
  // 2. The differences of 20 updates add up.
  const double kDouble = 20 * std::numeric_limits<double>::epsilon();
  const double kFloat = 20 * static_cast<double>(std::numeric_limits<float>::epsilon());
  int cases = 0;
  for (const Node& c : at(golden.root, "cases").items) {
    const bool is_double = at(c, "dtype").text == "float64";
    is_double ? check_case<double>(c, kDouble) : check_case<float>(c, kFloat);
    ++cases;
  }
  CHECK(cases == 10);
}

TEST_CASE("the first update copies the weight, to the bit") {
  const float third = 1.0F / 3;
  CHECK(formula::lerp(1e30F, third, formula::average_rate<float>(0.999, true)) == third);
}

TEST_CASE("every instruction set has the bits of the formula, for lengths around vectors") {
  for (const char* isa : {"baseline", "avx2", "avx512"}) {
    const SimdKernels* simd = simd_kernels(isa);
    if (!simd) continue;
    CAPTURE(isa);
    for (const float rate : {0.001F, 0.5F, 0.7F, 1.0F})
      for (const size_t count : {0U, 1U, 15U, 16U, 17U, 100U}) {
        std::vector<float> average(count + 1), weight(count + 1), expected;
        for (size_t i = 0; i <= count; ++i) {
          average[i] = std::sin(static_cast<float>(i));
          weight[i] = std::cos(static_cast<float>(3 * i));
          expected.push_back(i < count ? formula::lerp(average[i], weight[i], rate) : average[i]);
        }
        simd->average(average.data(), weight.data(), rate, count);
        CHECK(average == expected);
      }
  }
}

}  // namespace
}  // namespace dpt
