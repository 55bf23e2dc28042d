#include "images.h"

namespace dpt {

TEST_CASE("random_horizontal_flip: some images, always, never, and none in evaluation") {
  const std::vector<float> image = {1, 2, 3, 4, 5, 6}, flipped = {3, 2, 1, 6, 5, 4};
  const auto flips = [&](const std::string& yaml, Split split, uint64_t epoch = 0) {
    const std::vector<Choice> flip = {transform_of("random_horizontal_flip", yaml)};
    const BatchLoader loader(counting_images(1000, {1, 2, 3}), flip, {}, reference_gathers(),
                             split);
    std::vector<bool> out;
    for (const std::vector<float>& x : transformed(loader, {.seed = 5, .epoch = epoch})) {
      CHECK((x == image || x == flipped));
      out.push_back(x == flipped);
    }
    return out;
  };
  const auto count = [&](const std::string& yaml, Split split) {
    const std::vector<bool> f = flips(yaml, split);
    return std::count(f.begin(), f.end(), true);
  };
  CHECK(std::abs(count("", Split::train) - 500) < 6 * 16);  // six deviations
  CHECK(std::abs(count("0.1", Split::train) - 100) < 6 * 10);
  CHECK(count("1", Split::train) == 1000);
  CHECK(count("0", Split::train) == 0);
  CHECK(count("1", Split::test) == 0);
  CHECK(flips("", Split::train) == flips("", Split::train));
  CHECK(flips("", Split::train) != flips("", Split::train, 1));
  CHECK(has(complaint_of(transform_type("random_horizontal_flip"), "1.5"), "between 0 and 1"));
}

TEST_CASE("random transforms are for images") {
  Dataset d = counting_images(2, {1, 2, 3});
  d.inputs = reshaped(d.inputs, {2, 6});
  const std::vector<Choice> flip = {transform_of("random_horizontal_flip", "")};
  try {
    const BatchLoader loader(d, flip, {});
    FAIL("not refused");
  } catch (const Error& e) {
    CHECK(has(e.what(),
              "is for images [channels, height, width], but the data set's samples are [6]"));
  }
}

}  // namespace dpt
