#include "images.h"

namespace dpt {

TEST_CASE("cutout: a square whose middle is anywhere") {
  constexpr int64_t kSide = 12;
  const std::vector<Choice> cut = {transform_of("cutout", "{length: 4, value: 200}")};
  const BatchLoader loader(counting_images(3000, {1, kSide, kSide}), cut, {});
  std::vector<int> middles(kSide * kSide);
  for (const std::vector<float>& x : transformed(loader, {.seed = 9})) {
    int matches = 0;
    for (int64_t middle = 0; middle < kSide * kSide; ++middle) {
      bool same = true;
      for (int64_t i = 0; i < kSide * kSide && same; ++i) {
        const int64_t dy = i / kSide - middle / kSide, dx = i % kSide - middle % kSide;
        const bool inside = dy >= -2 && dy < 2 && dx >= -2 && dx < 2;
        same = x[static_cast<size_t>(i)] == (inside ? 200.0F : static_cast<float>(1 + i));
      }
      middles[static_cast<size_t>(middle)] += same;
      matches += same;
    }
    CHECK(matches == 1);
  }
  for (const int n : middles) CHECK(n > 0);  // of 3000 / 144 = 21
}

TEST_CASE("cutout: several holes, none in evaluation") {
  const auto zeros = [](const std::string& yaml, Split split) {
    const std::vector<Choice> cut = {transform_of("cutout", yaml)};
    size_t n = 0;
    for (const std::vector<float>& x : transformed(
             BatchLoader(counting_images(50, {1, 10, 10}), cut, {}, reference_gathers(), split)))
      n += static_cast<size_t>(std::count(x.begin(), x.end(), 0.0F));
    return n;
  };
  CHECK(zeros("{length: 1}", Split::train) == 50);
  CHECK(zeros("{length: 1, holes: 8}", Split::train) > 50 * 7);
  CHECK(zeros("8", Split::test) == 0);
  const TransformType& t = transform_type("cutout");
  CHECK(has(complaint_of(t, "{}"), "needs 'length'"));
  CHECK(has(complaint_of(t, "{length: 2, holes: 9}"), "'holes' must be between 1 and 8"));
}

}  // namespace dpt
