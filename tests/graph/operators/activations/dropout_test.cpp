#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {
namespace {

std::vector<double> kept(int64_t rows, int64_t first_sample, const Dropout& attrs,
                         uint64_t step = 4, int64_t width = 100) {
  const auto n = static_cast<size_t>(rows * width);
  return run_op("dropout", {{f32({rows, width}), std::vector<double>(n, 1)}}, attrs,
                {.seed = 9, .step = step, .first_sample = first_sample});
}

}  // namespace

TEST_CASE("dropout keeps its share and scales what it keeps") {
  const auto y = kept(100, 0, {.p = 0.2, .key = 1});
  double sum = 0;
  for (double v : y) {
    CHECK((v == 0 || v == 1.25));
    sum += v;
  }
  // 10000 draws of mean 1 and deviation 0.5: 0.02 is four deviations of the mean.
  CHECK(sum / 1e4 == doctest::Approx(1).epsilon(0.02));
}

TEST_CASE("dropout depends on the place in the global batch, not on the cut into shards") {
  const Dropout attrs{.p = 0.5, .key = 1};
  auto whole = kept(5, 0, attrs);
  auto cut = kept(2, 0, attrs);
  const auto rest = kept(3, 2, attrs);
  cut.insert(cut.end(), rest.begin(), rest.end());
  CHECK(cut == whole);
}

TEST_CASE("dropout draws anew for each layer, step and sample") {
  const Dropout attrs{.p = 0.5, .key = 1};
  const auto y = kept(1, 0, attrs);
  CHECK(kept(1, 0, attrs) == y);
  CHECK(kept(1, 1, attrs) != y);
  CHECK(kept(1, 0, attrs, 5) != y);
  CHECK(kept(1, 0, {.p = 0.5, .key = 2}) != y);
}

TEST_CASE("dropout with p = 0 is the identity, with p = 1 all zeros") {
  CHECK(kept(2, 0, {.p = 0}) == std::vector<double>(200, 1));
  CHECK(kept(2, 0, {.p = 1}) == std::vector<double>(200, 0));
}

TEST_CASE("dropout's gradient keeps what dropout kept") {
  const Dropout attrs{.p = 0.5, .key = 3};
  const StepContext context{.seed = 1, .step = 2, .first_sample = 3};
  const Given ones{f32({2, 70}), std::vector<double>(140, 1)};
  CHECK(run_op("dropout", {ones}, attrs, context) ==
        run_op("dropout_gradient", {ones}, attrs, context));
}

TEST_CASE("dropout of channels keeps whole channels, by the words of their numbers") {
  const StepContext context{.seed = 3, .step = 5, .first_sample = 11};
  const Given x{f32({2, 40, 3}), std::vector<double>(240, 1)};
  const auto each = run_op("dropout", {{f32({2, 40}), std::vector<double>(80, 1)}},
                           Dropout{.p = 0.5, .key = 7}, context);
  const auto y = run_op("dropout", {x}, Dropout{.p = 0.5, .key = 7, .channels = true}, context);
  for (size_t i = 0; i < y.size(); ++i) CHECK(y[i] == each[i / 3]);
  CHECK(refusal("dropout", {f32({2, 3})}, Dropout{.channels = true}) ==
        "dropout: takes [N, C, ...] to drop channels, not [2, 3]");
}

}  // namespace dpt
