// The random flips of images, of columns or rows.
#pragma once

#include <any>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "data/dataset.h"
#include "formats/python_call.h"

namespace dpt::transforms {

// Like torchvision's RandomHorizontalFlip, or with kRows RandomVerticalFlip.
template <bool kRows>
struct RandomFlip {
  static constexpr Usage kUsage{
      kRows ? "torchvision.transforms.RandomVerticalFlip"
            : "torchvision.transforms.RandomHorizontalFlip",
      kRows ? "transforms: [{random_vertical_flip: {p: 0.5}}, to_tensor]"
            : "transforms: [{random_horizontal_flip: {p: 0.5}}, to_tensor]"};

  double p = 0.5;
  static KeyTable<RandomFlip> keys() {
    return KeyTable<RandomFlip>().optional("p", &RandomFlip::p,
                                           "probability that an image is flipped", kProbability);
  }

  static augment::Change change(const std::any& settings) {
    return augment::Flip{.p = std::any_cast<const RandomFlip&>(settings).p, .rows = kRows};
  }

  static std::string torch_of(const std::any& settings, Split split, std::string_view name) {
    if (split == Split::test) return "";
    PythonCall call(kRows ? "transforms.RandomVerticalFlip" : "transforms.RandomHorizontalFlip");
    call.key("p", std::any_cast<const RandomFlip&>(settings).p, 0.5);
    return fmt::format("{0} = {1}({0})\n", name, call.str());
  }
  static std::string torch(const std::any& settings, Split split) {
    return torch_of(settings, split, "x");
  }
  static std::string torch_targets(const std::any& settings, Split split) {
    return torch_of(settings, split, "y");
  }

  static TransformType type(std::string_view name, std::string_view summary) {
    TransformType t{registry_entry<RandomFlip>(name, summary)};
    t.random.change = change;
    t.random.torch = torch;
    t.random.torch_targets = torch_targets;
    return t;
  }
};

}  // namespace dpt::transforms
