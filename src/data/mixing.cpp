#include "data/mixing.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/fail.h"

namespace dpt {
namespace {

// A standard normal number (Box and Muller).
double draw_normal(augment::Draw& draw) {
  const double u = 1 - augment::uniform(draw);  // (0, 1]
  const double v = augment::uniform(draw);
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

// From Gamma(shape, 1). A shape below 1 is that of shape + 1, scaled.
double draw_gamma(augment::Draw& draw, double shape) {
  double scale = 1;
  if (shape < 1) {
    scale = std::pow(1 - augment::uniform(draw), 1 / shape);
    shape += 1;
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = draw_normal(draw), v = std::pow(1 + c * x, 3);
    if (v <= 0) continue;
    const double u = 1 - augment::uniform(draw);
    if (std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) return scale * d * v;
  }
}

// The box of CutMix, whose area is about 1 - share of the image's.
augment::Rect draw_box(augment::Draw& draw, double share, int64_t height, int64_t width) {
  const int64_t x = augment::below(draw, width), y = augment::below(draw, height);
  const double r = 0.5 * std::sqrt(1 - share);
  const auto half_width = static_cast<int64_t>(r * static_cast<double>(width));
  const auto half_height = static_cast<int64_t>(r * static_cast<double>(height));
  return {.top = std::max<int64_t>(y - half_height, 0),
          .left = std::max<int64_t>(x - half_width, 0),
          .bottom = std::min(y + half_height, height),
          .right = std::min(x + half_width, width)};
}

void blend(double share, std::span<const float> partner, std::span<float> x) {
  const auto own = static_cast<float>(share), rest = static_cast<float>(1 - share);
  for (size_t i = 0; i < x.size(); ++i) x[i] = partner[i] * rest + x[i] * own;
}

}  // namespace

double draw_beta(augment::Draw& draw, double alpha) {
  const double a = draw_gamma(draw, alpha), b = draw_gamma(draw, alpha);
  if (a + b > 0) return a / (a + b);
  return augment::uniform(draw) < 0.5 ? 0 : 1;  // the limit for alpha near 0
}

MixDraw draw_mix(std::span<const Mixing> mixings, const AugmentSeed& seed, DrawnSample sample,
                 uint64_t index, size_t samples, int64_t height, int64_t width) {
  require(!mixings.empty() && samples > 0, "something to mix");
  augment::Draw draw = draw_of(seed, sample, index);
  const auto chosen = static_cast<size_t>(
      mixings.size() == 1 ? 0 : augment::below(draw, static_cast<int64_t>(mixings.size())));
  const Mixing& mixing = mixings[chosen];
  MixDraw out;
  if (augment::uniform(draw) >= mixing.p) return out;
  out.mixed = true;
  out.partner = static_cast<size_t>(augment::below(draw, static_cast<int64_t>(samples)));
  out.share = draw_beta(draw, mixing.alpha);
  if (mixing.kind == Mixing::Kind::mixup) return out;
  out.pasted = true;
  out.box = draw_box(draw, out.share, height, width);
  const auto area =
      static_cast<double>((out.box.right - out.box.left) * (out.box.bottom - out.box.top));
  out.share = 1 - area / static_cast<double>(height * width);
  return out;
}

void mix_inputs(const MixDraw& draw, std::span<const float> partner, int64_t height, int64_t width,
                std::span<float> x) {
  if (!draw.mixed) return;
  if (!draw.pasted) return blend(draw.share, partner, x);
  const auto [top, left, bottom, right] = draw.box;
  const auto pixels = static_cast<size_t>(height * width);
  for (size_t channel = 0; channel < x.size(); channel += pixels)
    for (int64_t y = top; y < bottom; ++y) {
      const size_t row = channel + static_cast<size_t>(y * width + left);
      std::ranges::copy(partner.subspan(row, static_cast<size_t>(right - left)),
                        x.begin() + static_cast<std::ptrdiff_t>(row));
    }
}

void mix_targets(const MixDraw& draw, std::span<const float> partner, std::span<float> y) {
  if (draw.mixed) blend(draw.share, partner, y);
}

}  // namespace dpt
