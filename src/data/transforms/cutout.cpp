#include <fmt/format.h>

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
        .required("length", &Cutout::length, "of a side, in pixels", kSize)
        .optional("holes", &Cutout::holes, "how many squares",
                  Range{"must be between 1 and 8", 1, 8})
        .optional("value", &Cutout::value, "what stands there then");
  }
};

augment::Change change(const std::any& settings) {
  const auto& c = std::any_cast<const Cutout&>(settings);
  return augment::Cutout{c.length, c.holes};
}

std::vector<double> fill(const std::any& settings) {
  return {std::any_cast<const Cutout&>(settings).value};
}

std::string torch(const std::any& settings, Split split) {
  if (split == Split::test) return "";
  const auto& c = std::any_cast<const Cutout&>(settings);
  return fmt::format(
      "x = x.clone()\n"
      "for _ in range({}):\n"
      "    top, left = (int(torch.randint(side, ())) - {} for side in x.shape[-2:])\n"
      "    rows, columns = (slice(max(first, 0), max(first + {}, 0)) for first in (top, left))\n"
      "    x[..., rows, columns] = {}\n",
      c.holes, c.length / 2, c.length, c.value);
}

}  // namespace

TransformType cutout() {
  TransformType t{
      nameable<Cutout>("cutout", "While training random squares of every image are painted over.")};
  t.random = {change, fill, nullptr, torch};
  return t;
}

}  // namespace dpt::transforms
