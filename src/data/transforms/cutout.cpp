#include "data/augment.h"
#include "data/dataset.h"

namespace dpt::transforms {
namespace {

// cutout: DeVries and Taylor 2017, as their code: squares whose middles are anywhere in the image,
// so that they may stick out of it.
struct Cutout {
  int64_t length = 16, holes = 1;
  double value = 0;
  static KeyTable<Cutout> keys() {
    return KeyTable<Cutout>()
        .required("length", &Cutout::length, "of a side, in pixels", kPositive)
        .optional("holes", &Cutout::holes, "how many squares",
                  Range{"must be between 1 and 8", 1, 8})
        .optional("value", &Cutout::value, "what stands there then");
  }
};

void frame(const std::any& settings, Draw* draw, Frame::Colour colour, Frame& f) {
  if (draw == nullptr) return;
  const auto& c = std::any_cast<const Cutout&>(settings);
  const int64_t half = c.length / 2;
  for (int64_t hole = 0; hole < c.holes; ++hole) {
    const int64_t y = draw->below(f.height()), x = draw->below(f.width());
    f.patch({y - half, x - half, y - half + c.length, x - half + c.length}, colour);
  }
}

std::vector<double> fill(const std::any& settings) {
  return {std::any_cast<const Cutout&>(settings).value};
}

}  // namespace

TransformType cutout() {
  TransformType t{
      nameable<Cutout>("cutout", "While training random squares of every image are painted over.")};
  t.random = {frame, fill, nullptr};
  return t;
}

}  // namespace dpt::transforms
