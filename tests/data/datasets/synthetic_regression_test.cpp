#include "base/generator.h"
#include "loading.h"

namespace dpt {
namespace {

TEST_CASE("synthetic_regression: without noise the targets are x W + b") {
  for (const Split split : {Split::train, Split::test}) {
    const Dataset d =
        load("synthetic_regression",
             "{samples: 20, in_features: 3, out_features: 2, noise: 0, seed: 5, test_samples: 20}",
             split);
    Generator g(5);
    std::vector<float> w(6), b(2);
    g.normal_(w, 0, 1);
    g.normal_(b, 0, 1);
    const std::vector<float> x = all_of<float>(d.inputs), y = all_of<float>(d.targets);
    for (size_t n = 0; n < 20; ++n)
      for (size_t o = 0; o < 2; ++o) {
        const float expected =
            x[3 * n] * w[o] + x[3 * n + 1] * w[2 + o] + x[3 * n + 2] * w[4 + o] + b[o];
        // Four roundings of numbers of about 4 at most: 4 * 2^-22.
        CHECK(y[2 * n + o] == doctest::Approx(expected).epsilon(1e-6));
      }
  }
}

TEST_CASE("synthetic_regression: the noise has the given deviation") {
  const auto of = [](const std::string& noise) {
    return all_of<float>(
        load("synthetic_regression", "{samples: 4000, noise: " + noise + "}").targets);
  };
  const std::vector<float> clean = of("0"), noisy = of("0.5");
  double squares = 0;
  for (size_t i = 0; i < clean.size(); ++i)
    squares += static_cast<double>((noisy[i] - clean[i]) * (noisy[i] - clean[i])) / 4000;
  CHECK(squares == doctest::Approx(0.25).epsilon(0.1));  // 4000 samples: 2.2 % standard error
}

TEST_CASE("synthetic_regression: Python lines") {
  CHECK(has(torch_data_of("synthetic_regression", "{seed: 5}", Split::test),
            "g = torch.Generator().manual_seed(7)\n"));
}

}  // namespace
}  // namespace dpt
