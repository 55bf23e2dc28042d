#include <fmt/format.h>

#include "data/dataset.h"

namespace dpt::transforms {
namespace {

// DeVries and Taylor 2017, like their code: squares are centered anywhere in the image, so they may
// extend beyond it.
struct Cutout {
  static constexpr Usage kUsage{
      "", "transforms: [{cutout: {length: 8, holes: 2, value: 0}}, to_tensor]"};

  int64_t length = 16, holes = 1;
  double value = 0;
  static KeyTable<Cutout> keys() {
    return KeyTable<Cutout>()
        .required("length", &Cutout::length, "side of a square in pixels", kSize)
        .optional("holes", &Cutout::holes, "number of squares",
                  Range{.text = "must be between 1 and 8", .low = 1, .high = 8})
        .optional("value", &Cutout::value, "value of the erased pixels");
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
      registry_entry<Cutout>("cutout", "Erases random squares of every image, in training only.")};
  t.random = {change, fill, nullptr, torch};
  return t;
}

}  // namespace dpt::transforms
