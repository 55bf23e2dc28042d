#include <fmt/format.h>

#include "base/generator.h"
#include "data/tables.h"

namespace dpt::datasets {
namespace {

// Inputs f32 [samples, in_features] and targets f32 [samples, out_features], independent normal
// numbers: torch.randn of a generator with this seed, inputs first. The test split uses seed + 1.
struct Random {
  static constexpr Usage kUsage{
      "torch.randn",
      "dataset: {random: {samples: 2048, in_features: 20, out_features: 1, seed: 0,\n"
      "    test_samples: 100}}"};

  int64_t samples = 100, in_features = 10, out_features = 10, seed = 0, test_samples = 100;
  static KeyTable<Random> keys() {
    return KeyTable<Random>()
        .optional("samples", &Random::samples, "number of training samples", kSamples)
        .optional("in_features", &Random::in_features, "number of input features", kSize)
        .optional("out_features", &Random::out_features, "number of target values", kSize)
        .optional("seed", &Random::seed, "seed of the generator; the test split uses seed + 1")
        .optional("test_samples", &Random::test_samples, "number of test samples", kSamples);
  }
};

struct Sizes {
  int64_t samples, seed;
};
Sizes sizes_of(const Random& r, Split split) {
  return split == Split::train ? Sizes{r.samples, r.seed} : Sizes{r.test_samples, r.seed + 1};
}

Dataset load(const std::any& settings, const LoadQuery& query) {
  const auto& r = std::any_cast<const Random&>(settings);
  const auto [samples, seed] = sizes_of(r, query.split);
  Generator g(static_cast<uint64_t>(seed));
  const NewTable x({DType::f32, {samples, r.in_features}}),
      y({DType::f32, {samples, r.out_features}});
  if (!query.sizes_only) {
    g.normal_(x.as<float>(), 0, 1);
    g.normal_(y.as<float>(), 0, 1);
  }
  Dataset d;
  d.made = !query.sizes_only;
  d.inputs = NewTable(x).done();
  d.targets = NewTable(y).done();
  d.description = describe("random", d, "");
  return d;
}

std::string torch(const std::any& settings, const LoadQuery& query) {
  const auto& r = std::any_cast<const Random&>(settings);
  const auto [samples, seed] = sizes_of(r, query.split);
  return fmt::format(
      "g = torch.Generator().manual_seed({})\n"
      "x = torch.randn({}, {}, generator=g)\n"
      "y = torch.randn({}, {}, generator=g)\n",
      seed, samples, r.in_features, samples, r.out_features);
}

}  // namespace

DatasetType random() {
  DatasetType t{registry_entry<Random>(
      "random", "Normally distributed random inputs and targets, as torch.randn returns them.")};
  t.load = load;
  t.torch = torch;
  return t;
}

}  // namespace dpt::datasets
