#include "images.h"

namespace dpt {

TEST_CASE("random_erasing: rectangles of the areas and shapes that were asked for, anywhere") {
  constexpr int64_t kSide = 40;
  const std::vector<Choice> erase = {transform_of(
      "random_erasing", "{p: 0.75, scale: [0.1, 0.2], ratio: [0.5, 2], value: [0, 255]}")};
  const BatchLoader loader(counting_images(2000, {2, kSide, kSide}), erase, {});
  const std::vector<float> whole =
      transformed(BatchLoader(counting_images(1, {2, kSide, kSide}), {}, {}))[0];
  int erased = 0;
  double tops = 0;
  for (const std::vector<float>& x : transformed(loader, {.seed = 2})) {
    augment::Rect r{kSide, kSide, 0, 0};
    for (int64_t i = 0; i < kSide * kSide; ++i) {
      if (x[static_cast<size_t>(i)] == whole[static_cast<size_t>(i)]) continue;
      r = {std::min(r.top, i / kSide), std::min(r.left, i % kSide),
           std::max(r.bottom, i / kSide + 1), std::max(r.right, i % kSide + 1)};
    }
    if (r.bottom == 0) {
      CHECK(x == whole);
      continue;
    }
    ++erased;
    const int64_t height = r.bottom - r.top, width = r.right - r.left;
    // A pixel more or less by rounding each side.
    CHECK(height * width >= kSide * kSide / 10 - height - width);
    CHECK(height * width <= kSide * kSide / 5 + height + width);
    CHECK(height <= 2 * (width + 1));
    CHECK(width <= 2 * (height + 1));
    tops += static_cast<double>(r.top) / static_cast<double>(kSide - height);
    for (int64_t c = 0; c < 2; ++c)
      for (int64_t i = 0; i < kSide * kSide; ++i) {
        const bool inside = i / kSide >= r.top && i / kSide < r.bottom && i % kSide >= r.left &&
                            i % kSide < r.right;
        const auto at = static_cast<size_t>(c * kSide * kSide + i);
        if (x[at] != (inside ? (c == 0 ? 0.0F : 255.0F) : whole[at])) FAIL("another pixel at ", at);
      }
  }
  CHECK(std::abs(erased - 1500) < 6 * 20);  // six deviations
  CHECK(std::abs(tops / erased - 0.5) < 6 * 0.29 / 38);
}

TEST_CASE("random_erasing: what does not fit") {
  const TransformType& t = transform_type("random_erasing");
  CHECK(has(complaint_of(t, "{scale: 0.5}"), "'scale' must be two numbers, the smaller one first"));
  CHECK(has(complaint_of(t, "{ratio: [2, 1]}"), "'ratio' must be two numbers"));
  CHECK(has(complaint_of(t, "{ratio: [0, 1]}"), "'ratio' must be positive"));
  CHECK(has(complaint_of(t, "{value: []}"), "'value' must be one number, or one per channel"));
  CHECK(refusal("random_erasing", "{value: [1, 2]}", {3, 4, 4}) ==
        "transform 'random_erasing': 'value' has 2 numbers, but samples [3, 4, 4] have 3 channels");
}

}  // namespace dpt
