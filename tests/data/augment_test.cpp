#include "data/augment.h"

#include <numeric>
#include <vector>

#include <doctest/doctest.h>

namespace dpt {
namespace {

constexpr int64_t kChannels = 2, kHeight = 5, kWidth = 7;

// What crops, flips and patches mean, a pixel at a time: each makes a new image.
struct Plain {
  int64_t height = kHeight, width = kWidth;
  std::vector<float> x;
  Plain() : x(kChannels * kHeight * kWidth) { std::iota(x.begin(), x.end(), 0.0F); }

  template <class At>
  void remake(int64_t new_height, int64_t new_width, At at) {
    std::vector<float> out;
    for (int64_t c = 0; c < kChannels; ++c)
      for (int64_t y = 0; y < new_height; ++y)
        for (int64_t x_ = 0; x_ < new_width; ++x_) out.push_back(at(c, y, x_));
    x = std::move(out);
    height = new_height;
    width = new_width;
  }
  float get(int64_t c, int64_t y, int64_t column) const {
    return x[static_cast<size_t>((c * height + y) * width + column)];
  }
  void crop(int64_t top, int64_t left, int64_t new_height, int64_t new_width, const float* colour) {
    remake(new_height, new_width, [&](int64_t c, int64_t y, int64_t column) {
      const int64_t from_y = y + top, from_x = column + left;
      const bool inside = from_y >= 0 && from_y < height && from_x >= 0 && from_x < width;
      return inside ? get(c, from_y, from_x) : colour[c];
    });
  }
  void flip() {
    remake(height, width,
           [&](int64_t c, int64_t y, int64_t column) { return get(c, y, width - 1 - column); });
  }
  void patch(const Rect& r, const float* colour) {
    remake(height, width, [&](int64_t c, int64_t y, int64_t column) {
      const bool inside = y >= r.top && y < r.bottom && column >= r.left && column < r.right;
      return inside ? colour[c] : get(c, y, column);
    });
  }
};

TEST_CASE("a frame shows what its crops, flips and patches give one after the other") {
  Plain image;
  const std::vector<float> pixels = image.x;
  const std::vector<std::vector<float>> colours = {{-1, -2}, {-3, -4}, {-5, -6}};
  for (uint64_t sample = 0; sample < 2000; ++sample) {
    CAPTURE(sample);
    Draw draw({.seed = 3, .epoch = 1}, sample, 0);
    Plain expected;
    Frame frame({kChannels, kHeight, kWidth});
    for (int64_t i = draw.below(6); i >= 0; --i) {
      const float* colour = colours[static_cast<size_t>(draw.below(3))].data();
      const int64_t a = draw.below(9) - 4, b = draw.below(9) - 4, h = 1 + draw.below(8),
                    w = 1 + draw.below(8);
      switch (draw.below(3)) {
        case 0:
          expected.crop(a, b, h, w, colour);
          frame.crop(a, b, h, w, colour);
          break;
        case 1:
          expected.flip();
          frame.flip();
          break;
        default:
          expected.patch({a, b, a + h, b + w}, colour);
          frame.patch({a, b, a + h, b + w}, colour);
      }
    }
    REQUIRE(frame.height() == expected.height);
    REQUIRE(frame.width() == expected.width);
    std::vector<float> got(expected.x.size(), -99);
    frame.draw(got.data(), [&](int64_t from, size_t count, int64_t channel, float* to) {
      REQUIRE(from / (kHeight * kWidth) == channel);
      REQUIRE(from + static_cast<int64_t>(count) <= (channel + 1) * kHeight * kWidth);
      std::copy_n(pixels.begin() + from, count, to);
    });
    REQUIRE(got == expected.x);
  }
}

TEST_CASE("draws belong to seed, epoch, sample and transform, and are even") {
  const auto first = [](uint64_t seed, uint64_t epoch, uint64_t sample, size_t transform) {
    return Draw({seed, epoch}, sample, transform).uniform();
  };
  const double one = first(1, 2, 3, 4);
  CHECK(one == first(1, 2, 3, 4));
  CHECK(one != first(2, 2, 3, 4));
  CHECK(one != first(1, 3, 3, 4));
  CHECK(one != first(1, 2, 4, 4));
  CHECK(one != first(1, 2, 3, 5));
  std::vector<int> count(5);
  double sum = 0;
  Draw draw({1, 0}, 0, 0);
  for (int i = 0; i < 10000; ++i) {
    ++count[static_cast<size_t>(draw.below(5))];
    sum += draw.uniform(-1, 3);
  }
  // Six deviations: sqrt(10000 * 0.2 * 0.8) = 40, and sqrt(10000 / 12) * 4 = 115.
  for (const int c : count) CHECK(std::abs(c - 2000) < 240);
  CHECK(std::abs(sum - 10000) < 700);
}

}  // namespace
}  // namespace dpt
