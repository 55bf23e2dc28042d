#include "data/color_jitter.h"

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include <doctest/doctest.h>

namespace dpt {
namespace {

using Floats = std::vector<float>;

// Values of torchvision.transforms.v2.functional of PyTorch 2.15 for this image [3, 1, 3].
const Floats kImage = {0.1F, 0.9F, 0.5F, 0.7F, 0.2F, 0.5F, 0.3F, 0.4F, 0.55F};

void check(const JitterDraw& draw, const Floats& expected, int64_t channels = 3,
           Floats image = kImage) {
  jitter_colors(draw, channels, image);
  REQUIRE(image.size() == expected.size());
  for (size_t i = 0; i < image.size(); ++i)  // the expected numbers have six decimals
    CHECK(image[i] == doctest::Approx(expected[i]).epsilon(3e-6).scale(1));
}

TEST_CASE("each change is torchvision's") {
  check({.brightness = 1.3}, {0.13F, 1.0F, 0.65F, 0.91F, 0.26F, 0.65F, 0.39F, 0.52F, 0.715F});
  check({.contrast = 0.6}, {0.248353F, 0.728353F, 0.488353F, 0.608353F, 0.308353F, 0.488353F,
                            0.368353F, 0.428353F, 0.518353F});
  check({.saturation = 1.7},
        {0.0F, 1.0F, 0.496045F, 0.857507F, 0.037593F, 0.496045F, 0.177507F, 0.377593F, 0.581045F});
  check({.hue = 0.2}, {0.1F, 0.9F, 0.55F, 0.38F, 0.84F, 0.5F, 0.7F, 0.2F, 0.54F});
  check({.hue = -0.45}, {0.7F, 0.2F, 0.535F, 0.1F, 0.89F, 0.55F, 0.32F, 0.9F, 0.5F});
}

TEST_CASE("changes are applied in the order that was drawn") {
  check({.order = {3, 1, 2, 0}, .brightness = 0.8, .contrast = 1.4, .saturation = 0.5, .hue = -0.1},
        {0.268034F, 0.581455F, 0.412696F, 0.514434F, 0.213286F, 0.429496F, 0.202602F, 0.560486F,
         0.440696F});
}

TEST_CASE("gray images have no saturation and no hue") {
  const Floats gray = {0.1F, 0.9F, 0.5F};
  check({.contrast = 0.6}, {0.26F, 0.74F, 0.5F}, 1, gray);
  check({.saturation = 1.7, .hue = 0.2}, gray, 1, gray);
}

TEST_CASE("gray, black and white pixels of a color image keep their hue") {
  check({.hue = 0.3}, {0, 1, 0.5F, 0, 1, 0.5F, 0, 1, 0.5F}, 3,
        {0, 1, 0.5F, 0, 1, 0.5F, 0, 1, 0.5F});
}

TEST_CASE("draws depend on seed, epoch, sample and repeat, and lie in their ranges") {
  const ColorJitter jitter{.brightness = ColorJitter::Range{0.5, 1.5},
                           .contrast = {},
                           .saturation = {},
                           .hue = ColorJitter::Range{-0.1, 0.1}};
  std::set<std::array<int, 4>> orders;
  double sum = 0;
  for (uint32_t i = 0; i < 2000; ++i) {
    const JitterDraw draw = draw_jitter(jitter, {1, 2}, {i}, 3);
    REQUIRE(draw.brightness);
    CHECK_FALSE(draw.contrast);
    CHECK(*draw.brightness >= 0.5);
    CHECK(*draw.brightness < 1.5);
    CHECK(std::abs(*draw.hue) <= 0.1);
    orders.insert(draw.order);
    sum += *draw.brightness;
  }
  CHECK(orders.size() == 24);
  CHECK(std::abs(sum / 2000 - 1) < 0.03);  // the mean's standard deviation is 0.0065
  CHECK(draw_jitter(jitter, {1, 2}, {5}, 3).hue == draw_jitter(jitter, {1, 2}, {5}, 3).hue);
  CHECK(draw_jitter(jitter, {1, 2}, {5}, 3).hue != draw_jitter(jitter, {1, 3}, {5}, 3).hue);
  CHECK(draw_jitter(jitter, {1, 2}, {5}, 3).hue != draw_jitter(jitter, {1, 2}, {5, 1}, 3).hue);
}

}  // namespace
}  // namespace dpt
