#include "images.h"

namespace dpt {

TEST_CASE("random_vertical_flip: some images, always, never, and none in evaluation") {
  const std::vector<float> image = {1, 2, 3, 4, 5, 6}, flipped = {5, 6, 3, 4, 1, 2};
  const auto count = [&](const std::string& yaml, Split split) {
    const std::vector<Choice> flip = {transform_of("random_vertical_flip", yaml)};
    const BatchLoader loader(counting_images(1000, {1, 3, 2}), flip, {}, reference_gathers(),
                             split);
    int64_t out = 0;
    for (const std::vector<float>& x : transformed(loader, {.seed = 5, .epoch = 0})) {
      CHECK((x == image || x == flipped));
      out += x == flipped ? 1 : 0;
    }
    return out;
  };
  CHECK(std::abs(count("", Split::train) - 500) < 6 * 16);  // six deviations
  CHECK(count("1", Split::train) == 1000);
  CHECK(count("0", Split::train) == 0);
  CHECK(count("1", Split::test) == 0);
}

}  // namespace dpt
