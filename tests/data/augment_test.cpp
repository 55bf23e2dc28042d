#include "data/augment.h"

#include <algorithm>
#include <cmath>
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
  void flip(bool rows) {
    remake(height, width, [&](int64_t c, int64_t y, int64_t column) {
      return rows ? get(c, height - 1 - y, column) : get(c, y, width - 1 - column);
    });
  }
  void patch(const augment::Rect& r, const float* colour) {
    remake(height, width, [&](int64_t c, int64_t y, int64_t column) {
      const bool inside = y >= r.top && y < r.bottom && column >= r.left && column < r.right;
      return inside ? colour[c] : get(c, y, column);
    });
  }
};

TEST_CASE("a frame shows what its crops, flips and patches give one after the other") {
  Plain image;
  const std::vector<float> pixels = image.x;
  const std::vector<float> colours = {-1, -2, -3, -4, -5, -6};  // of two channels each
  for (uint64_t sample = 0; sample < 2000; ++sample) {
    CAPTURE(sample);
    augment::Draw draw = augment::draw_of(3, 1, sample, 0);
    Plain expected;
    augment::Frame frame;
    augment::begin(frame, kHeight, kWidth);
    for (int64_t i = below(draw, 6); i >= 0; --i) {
      const auto colour = static_cast<int32_t>(below(draw, 3));
      const float* const painted = colours.data() + kChannels * colour;
      const int64_t a = below(draw, 9) - 4, b = below(draw, 9) - 4, h = 1 + below(draw, 8),
                    w = 1 + below(draw, 8);
      switch (below(draw, 4)) {
        case 0:
          expected.crop(a, b, h, w, painted);
          augment::crop(frame, a, b, h, w, colour);
          break;
        case 1:
          expected.flip(false);
          augment::flip(frame, false);
          break;
        case 2:
          expected.flip(true);
          augment::flip(frame, true);
          break;
        default:
          expected.patch({a, b, a + h, b + w}, painted);
          augment::paint(frame, {a, b, a + h, b + w}, colour);
      }
    }
    REQUIRE(frame.height == expected.height);
    REQUIRE(frame.width == expected.width);
    // As CPUs do it, rows at a time.
    std::vector<float> got(expected.x.size(), -99);
    dpt::draw(frame, colours.data(), kChannels, got.data(),
              [&](int64_t from, size_t count, int64_t channel, float* to) {
                REQUIRE(from / (kHeight * kWidth) == channel);
                REQUIRE(from + static_cast<int64_t>(count) <= (channel + 1) * kHeight * kWidth);
                std::copy_n(pixels.begin() + from, count, to);
              });
    REQUIRE(got == expected.x);
    // As GPUs do it, a pixel at a time.
    auto* x = expected.x.data();
    for (int64_t c = 0; c < kChannels; ++c)
      for (int64_t y = 0; y < frame.height; ++y)
        for (int64_t column = 0; column < frame.width; ++column) {
          const augment::Seen s = augment::seen(frame, y, column);
          const bool inside = s.pixel < kHeight * kWidth;
          REQUIRE(inside);
          REQUIRE(*x++ == (s.pixel < 0
                               ? colours[static_cast<size_t>(s.colour * kChannels + c)]
                               : pixels[static_cast<size_t>(c * kHeight * kWidth + s.pixel)]));
        }
  }
}

TEST_CASE("e^x of formulas is the library's, to the last bits") {
  // An error of the sum and two of the reduction, half a bit each.
  for (double x = -5; x < 5; x += 0.00037)
    REQUIRE(std::abs(augment::exp_of(x) - std::exp(x)) <= 0x1p-51 * std::exp(x));
  CHECK(augment::exp_of(0) == 1);
}

TEST_CASE("draws belong to seed, epoch, sample, transform and repeat, and are even") {
  const auto first = [](uint64_t seed, uint64_t epoch, uint64_t sample, size_t transform,
                        uint32_t repeat = 0) {
    augment::Draw draw = augment::draw_of(seed, epoch, sample, transform, repeat);
    return uniform(draw);
  };
  const double one = first(1, 2, 3, 4);
  CHECK(one == first(1, 2, 3, 4));
  CHECK(one != first(2, 2, 3, 4));
  CHECK(one != first(1, 3, 3, 4));
  CHECK(one != first(1, 2, 4, 4));
  CHECK(one != first(1, 2, 3, 5));
  CHECK(one == first(1, 2, 3, 4, 0));
  CHECK(one != first(1, 2, 3, 4, 1));
  CHECK(first(1, 2, 3, 4, 1) != first(1, 2, 3, 4, 0x10001));  // every bit counts
  std::vector<int> count(5);
  double sum = 0;
  augment::Draw draw = augment::draw_of(1, 0, 0, 0);
  for (int i = 0; i < 10000; ++i) {
    ++count[static_cast<size_t>(below(draw, 5))];
    sum += uniform(draw, -1, 3);
  }
  // Six deviations: sqrt(10000 * 0.2 * 0.8) = 40, and sqrt(10000 / 12) * 4 = 115.
  for (const int c : count) CHECK(std::abs(c - 2000) < 240);
  CHECK(std::abs(sum - 10000) < 700);
}

}  // namespace
}  // namespace dpt
