#include <map>

#include "images.h"

namespace dpt {

TEST_CASE("random_crop: every window of the padded image, equally often") {
  constexpr int64_t kDrawn = 6000;
  const std::vector<Choice> crop = {transform_of("random_crop", "{size: [2, 3], padding: 1}")};
  const BatchLoader loader(counting_images(kDrawn, {1, 3, 4}), crop, {});
  CHECK(loader.input() == TensorDesc{DType::f32, {1, 2, 3}});
  // The 5 x 6 pixels of the padded image.
  const std::vector<float> padded = {0, 0, 0, 0, 0, 0,  0,  1,  2, 3, 4, 0, 0, 5, 6,
                                     7, 8, 0, 0, 9, 10, 11, 12, 0, 0, 0, 0, 0, 0, 0};
  std::map<std::vector<float>, int> seen;
  for (const std::vector<float>& image : transformed(loader, {.seed = 1, .epoch = 2}))
    ++seen[image];
  CHECK(seen.size() == 4 * 4);
  for (size_t top = 0; top < 4; ++top)
    for (size_t left = 0; left < 4; ++left) {
      std::vector<float> window;
      for (size_t y = 0; y < 2; ++y)
        for (size_t x = 0; x < 3; ++x) window.push_back(padded[(top + y) * 6 + left + x]);
      // 375 are expected, with a deviation of 19
      CHECK(std::abs(seen[window] - 375) < 6 * 19);
    }
}

TEST_CASE("random_crop: evaluation takes the middle, as CenterCrop") {
  const std::vector<Choice> crop = {transform_of("random_crop", "{size: 2, padding: 3}")};
  const auto middle = [&](const Shape& image) {
    const BatchLoader loader(counting_images(1, image), crop, {}, reference_gathers(), Split::test);
    CHECK(loader.input().shape == Shape{1, 2, 2});
    return transformed(loader)[0];
  };
  CHECK(middle({1, 4, 4}) == std::vector<float>{6, 7, 10, 11});
  CHECK(middle({1, 3, 5}) == std::vector<float>{3, 4, 8, 9});  // 0.5 is 0, and 1.5 is 2
  CHECK(middle({1, 2, 2}) == std::vector<float>{1, 2, 3, 4});
}

TEST_CASE("random_crop: the padding goes through the transforms that follow") {
  const std::vector<Choice> list = {
      transform_of("random_crop", "{padding: [0, 4, 0, 0], fill: 255, size: [4, 1]}"),
      transform_of("to_tensor", ""),
      transform_of("normalize", "{mean: [0.5, 0.25], std: [0.5, 1]}")};
  const BatchLoader loader(counting_images(40, {2, 1, 1}), list, {});
  const auto normalized = [](float v, float mean, float std) { return (v / 255 - mean) / std; };
  const float outside[] = {normalized(255, 0.5F, 0.5F), normalized(255, 0.25F, 1)};
  const float inside[] = {normalized(1, 0.5F, 0.5F), normalized(101, 0.25F, 1)};
  int seen = 0;
  for (const std::vector<float>& x : transformed(loader))
    for (size_t i = 0; i < 8; ++i) {
      CHECK((x[i] == outside[i / 4] || (x[i] == inside[i / 4] && i % 4 == 3)));
      seen += x[i] == inside[i / 4];
    }
  CHECK(seen > 10);
}

TEST_CASE("random_crop: what does not fit") {
  const TransformType& t = transform_type("random_crop");
  CHECK(has(complaint_of(t, "{}"), "random_crop needs 'size', 'padding' or both"));
  CHECK(has(complaint_of(t, "{size: [1, 2, 3]}"), "'size' must be one number, or a height"));
  CHECK(has(complaint_of(t, "{padding: [1, 2, 3]}"), "'padding' must be one number, two or four"));
  CHECK(has(complaint_of(t, "{size: 0}"), "'size' must be between 1 and 2^31 - 1"));
  CHECK(has(complaint_of(t, "{padding: -1}"), "'padding' must be between 0 and 2^31 - 1"));
  CHECK(refusal("random_crop", "{size: 9, padding: [1, 3]}", {1, 3, 9}) == "");
  CHECK(refusal("random_crop", "{size: 9, padding: 2}", {1, 3, 9}) ==
        "transform 'random_crop': a window of 9 x 9 does not fit into images [1, 3, 9], with "
        "padding 7 x 13");
}

}  // namespace dpt
