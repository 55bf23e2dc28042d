#include <fmt/format.h>

#include "data/dataset.h"
#include "formats/python_call.h"

namespace dpt::transforms {
namespace {

// Like torchvision's RandomHorizontalFlip.
struct Flip {
  static constexpr Usage kUsage{"torchvision.transforms.RandomHorizontalFlip",
                                "transforms: [{random_horizontal_flip: {p: 0.5}}, to_tensor]"};

  double p = 0.5;
  static KeyTable<Flip> keys() {
    return KeyTable<Flip>().optional("p", &Flip::p, "probability that an image is flipped",
                                     kProbability);
  }
};

augment::Change change(const std::any& settings) {
  return augment::Flip{std::any_cast<const Flip&>(settings).p};
}

std::string torch_of(const std::any& settings, Split split, std::string_view name) {
  if (split == Split::test) return "";
  PythonCall call("transforms.RandomHorizontalFlip");
  call.key("p", std::any_cast<const Flip&>(settings).p, 0.5);
  return fmt::format("{0} = {1}({0})\n", name, call.str());
}

std::string torch(const std::any& settings, Split split) { return torch_of(settings, split, "x"); }

std::string torch_targets(const std::any& settings, Split split) {
  return torch_of(settings, split, "y");
}

}  // namespace

TransformType random_horizontal_flip() {
  TransformType t{
      registry_entry<Flip>("random_horizontal_flip", "Mirrors some images, in training only.")};
  t.random.change = change;
  t.random.torch = torch;
  t.random.torch_targets = torch_targets;
  return t;
}

}  // namespace dpt::transforms
