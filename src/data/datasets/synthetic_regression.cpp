#include <fmt/format.h>

#include "base/generator.h"
#include "data/tables.h"

namespace dpt::datasets {
namespace {

// y = x W + b + noise, with normal x, b and W [in_features, out_features]. A linear layer finds W
// and b, and its mean squared error approaches noise^2. W and b are drawn from a generator with
// `seed`, x and the noise from one with seed + 1 (test split: seed + 2).
struct Regression {
  static constexpr Usage kUsage{"",
                                "dataset: {synthetic_regression: {samples: 1000, in_features: 5, "
                                "out_features: 2, noise: 0.1,\n"
                                "    seed: 0, test_samples: 100}}"};

  int64_t samples = 1000, in_features = 10, out_features = 1, seed = 0, test_samples = 200;
  double noise = 0.1;
  static KeyTable<Regression> keys() {
    return KeyTable<Regression>()
        .optional("samples", &Regression::samples, "number of training samples", kSamples)
        .optional("in_features", &Regression::in_features, "number of input features", kSize)
        .optional("out_features", &Regression::out_features, "number of target values", kSize)
        .optional("noise", &Regression::noise, "standard deviation of the noise", kNotNegative)
        .optional("seed", &Regression::seed, "seed of the weights and samples")
        .optional("test_samples", &Regression::test_samples, "number of test samples", kSamples);
  }
};

struct Sizes {
  int64_t samples, seed;
};
Sizes sizes_of(const Regression& r, Split split) {
  return split == Split::train ? Sizes{r.samples, r.seed + 1} : Sizes{r.test_samples, r.seed + 2};
}

// On entry, y holds the noise, drawn from a standard normal distribution.
void add_product(const Regression& r, std::span<const float> x, std::span<float> y) {
  const auto in = static_cast<size_t>(r.in_features), out = static_cast<size_t>(r.out_features);
  const NewTable weight({DType::f32, {r.in_features, r.out_features}}),
      bias({DType::f32, {r.out_features}});
  const std::span<float> w = weight.as<float>(), b = bias.as<float>();
  Generator g(static_cast<uint64_t>(r.seed));
  g.normal_(w, 0, 1);
  g.normal_(b, 0, 1);
  for (size_t n = 0; n < y.size() / out; ++n)
    for (size_t o = 0; o < out; ++o) {
      double sum = 0;
      for (size_t i = 0; i < in; ++i)
        sum += static_cast<double>(x[n * in + i]) * static_cast<double>(w[i * out + o]);
      float& value = y[n * out + o];
      value = static_cast<float>(sum + static_cast<double>(b[o]) +
                                 r.noise * static_cast<double>(value));
    }
}

Dataset load(const std::any& settings, const LoadQuery& query) {
  const auto& r = std::any_cast<const Regression&>(settings);
  const auto [samples, seed] = sizes_of(r, query.split);
  NewTable inputs({DType::f32, {samples, r.in_features}}),
      targets({DType::f32, {samples, r.out_features}});
  if (!query.sizes_only) {
    Generator g(static_cast<uint64_t>(seed));
    g.normal_(inputs.as<float>(), 0, 1);
    g.normal_(targets.as<float>(), 0, 1);  // the noise
    add_product(r, inputs.as<float>(), targets.as<float>());
  }
  Dataset d;
  d.made = !query.sizes_only;
  d.inputs = std::move(inputs).done();
  d.targets = std::move(targets).done();
  d.description = describe("synthetic_regression", d, "");
  return d;
}

std::string torch(const std::any& settings, const LoadQuery& query) {
  const auto& r = std::any_cast<const Regression&>(settings);
  const auto [samples, seed] = sizes_of(r, query.split);
  return fmt::format(
      "g = torch.Generator().manual_seed({})\n"
      "w, b = torch.randn({}, {}, generator=g), torch.randn({}, generator=g)\n"
      "g = torch.Generator().manual_seed({})\n"
      "x, noise = torch.randn({}, {}, generator=g), torch.randn({}, {}, generator=g)\n"
      "y = (x.double() @ w.double() + b.double() + {} * noise.double()).float()\n",
      r.seed, r.in_features, r.out_features, r.out_features, seed, samples, r.in_features, samples,
      r.out_features, r.noise);
}

}  // namespace

DatasetType synthetic_regression() {
  DatasetType t{registry_entry<Regression>(
      "synthetic_regression", "Linear regression with known weights: y = x W + b + noise.")};
  t.load = load;
  t.torch = torch;
  return t;
}

}  // namespace dpt::datasets
