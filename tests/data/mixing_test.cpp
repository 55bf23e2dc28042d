#include "data/mixing.h"

#include <cmath>
#include <vector>

#include <doctest/doctest.h>

namespace dpt {
namespace {

using Floats = std::vector<float>;

TEST_CASE("shares have the mean and variance of Beta(alpha, alpha)") {
  for (const double alpha : {0.1, 0.4, 1.0, 3.0}) {
    CAPTURE(alpha);
    constexpr int kDraws = 20000;
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < kDraws; ++i) {
      augment::Draw draw = augment::draw_of(7, 0, i, 0);
      const double x = draw_beta(draw, alpha);
      REQUIRE(x >= 0);
      REQUIRE(x <= 1);
      sum += x;
      squares += (x - 0.5) * (x - 0.5);
    }
    // Four standard deviations of a mean of 20000 draws, whose own is at most 0.5, are 0.0142.
    CHECK(std::abs(sum / kDraws - 0.5) < 0.0142);
    CHECK(std::abs(squares / kDraws - 1 / (4 * (2 * alpha + 1))) < 0.0142);
  }
}

TEST_CASE("a draw depends on seed, epoch, sample and repeat, and on nothing else") {
  const std::vector<Mixing> mixup = {{.kind = Mixing::Kind::mixup, .alpha = 1}};
  const auto share = [&](AugmentSeed seed, uint32_t sample, uint32_t repeat = 0) {
    return draw_mix(mixup, seed, {sample, repeat}, 2, 50, 0, 0).share;
  };
  CHECK(share({1, 2}, 3) == share({1, 2}, 3));
  CHECK(share({1, 2}, 3) != share({2, 2}, 3));
  CHECK(share({1, 2}, 3) != share({1, 3}, 3));
  CHECK(share({1, 2}, 3) != share({1, 2}, 4));
  CHECK(share({1, 2}, 3) != share({1, 2}, 3, 1));
  std::vector<int> seen(50);
  for (uint32_t i = 0; i < 2000; ++i) ++seen[draw_mix(mixup, {1, 2}, {i}, 2, 50, 0, 0).partner];
  for (const int count : seen) CHECK(count > 10);  // 40 are expected, with a deviation of 6.3
}

TEST_CASE("with two mixings each sample draws one, and with a probability it may stay as it is") {
  const std::vector<Mixing> both = {{.kind = Mixing::Kind::mixup, .alpha = 1, .p = 0.5},
                                    {.kind = Mixing::Kind::cutmix, .alpha = 1, .p = 1}};
  int plain = 0, blended = 0, pasted = 0;
  for (uint32_t i = 0; i < 4000; ++i) {
    const MixDraw draw = draw_mix(both, {3, 0}, {i}, 0, 10, 8, 8);
    (!draw.mixed ? plain : draw.pasted ? pasted : blended) += 1;
  }
  // 1000, 1000 and 2000, with a standard deviation of at most 32.
  CHECK(std::abs(plain - 1000) < 128);
  CHECK(std::abs(blended - 1000) < 128);
  CHECK(std::abs(pasted - 2000) < 128);
}

TEST_CASE("mixup is torchvision's: the partner times 1 - s, plus the sample times s") {
  const MixDraw draw{.mixed = true, .partner = 1, .share = 0.25};
  Floats x{4, 8};
  mix_inputs(draw, Floats{0, 100}, 0, 0, x);
  CHECK(x == Floats{1, 77});
  Floats y{1, 0};
  mix_targets(draw, Floats{0, 1}, y);
  CHECK(y == Floats{0.25F, 0.75F});
  Floats same{4, 8};
  mix_inputs({}, Floats{0, 100}, 0, 0, same);
  CHECK(same == Floats{4, 8});
}

TEST_CASE("cutmix pastes a box of all channels, whose area is what the target loses") {
  const std::vector<Mixing> cutmix = {{.kind = Mixing::Kind::cutmix, .alpha = 1}};
  bool empty = false, large = false;
  for (uint32_t i = 0; i < 300; ++i) {
    const MixDraw draw = draw_mix(cutmix, {5, 1}, {i}, 0, 4, 6, 9);
    REQUIRE(draw.pasted);
    const auto& [top, left, bottom, right] = draw.box;
    REQUIRE(top >= 0);
    REQUIRE(left >= 0);
    REQUIRE(bottom <= 6);
    REQUIRE(right <= 9);
    const int64_t area = (bottom - top) * (right - left);
    CHECK(draw.share == doctest::Approx(1 - static_cast<double>(area) / 54).epsilon(1e-12));
    empty = empty || area == 0;
    large = large || area > 30;
  }
  CHECK(empty);
  CHECK(large);
  const MixDraw draw{.mixed = true, .share = 0.5, .pasted = true, .box = {0, 1, 2, 2}};
  Floats x(12, 0.0F);
  mix_inputs(draw, Floats{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 2, 3, x);
  CHECK(x == Floats{0, 2, 0, 0, 5, 0, 0, 8, 0, 0, 11, 0});
}

}  // namespace
}  // namespace dpt
